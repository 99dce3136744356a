package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

// ReadFile reads a regular file of so many bytes at most.
func ReadFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: it is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("read %s: it has more than %d bytes", path, most)
	}
	return text, nil
}

// FileFlag registers -o, --output of a command that writes a file.
func FileFlag(flags *pflag.FlagSet, path *string) {
	flags.StringVarP(path, "output", "o", "", "`FILE` to write; -: standard output")
}

// CheckFile returns an error if no file is named.
func CheckFile(path string) error {
	if path == "" {
		return errors.New("-o is missing: name the file to write, or - for standard output")
	}
	return nil
}

// WriteFile writes a file as a whole, or not at all: who reads the path meanwhile gets the file that was there. "-" is out.
func WriteFile(path string, out io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(out)
	}
	part, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(part.Name()) // fails once it has its name
	if err := errors.Join(write(part), part.Chmod(0o644), part.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

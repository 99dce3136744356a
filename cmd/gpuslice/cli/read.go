package cli

import (
	"fmt"
	"io"
	"os"
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

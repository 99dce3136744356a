package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds on input, so that a wrong path ends in a sentence and not in a full memory.
const (
	MaxManifest = 16 << 20  // bytes of a file of manifests or policies
	MaxNodes    = 128 << 20 // bytes of a file of nodes: a large cluster's list has some 20 KiB a node
	maxFiles    = 10_000    // files of a directory
)

// StdinPath is the path that means standard input.
const StdinPath = "-"

// Reader reads files, directories and standard input, the last once at most.
type Reader struct {
	Stdin io.Reader
	taken bool
}

// Documents reads every document of paths, in their order. An unreadable file is a document with an error, so
// that the others go on.
func (r *Reader) Documents(paths []string, limit int64) []Document {
	var all []Document
	for _, path := range paths {
		all = append(all, r.path(path, limit)...)
	}
	return all
}

func (r *Reader) path(path string, limit int64) []Document {
	if path == StdinPath {
		return r.standardInput(limit)
	}
	status, err := os.Stat(path)
	if err != nil {
		return failed(path, readError(err))
	}
	if !status.IsDir() {
		return file(path, limit, true)
	}
	files, err := manifestsUnder(path)
	if err != nil {
		return failed(path, err)
	}
	var all []Document
	for _, f := range files {
		all = append(all, file(f, limit, false)...)
	}
	return all
}

func (r *Reader) standardInput(limit int64) []Document {
	const name = "standard input"
	if r.taken {
		return failed(name, errors.New("it can be read only once"))
	}
	r.taken = true
	text, err := readBounded(r.Stdin, limit)
	if err != nil {
		return failed(name, err)
	}
	return split(name, text, true)
}

// manifestsUnder lists the YAML and JSON files under a directory, sorted. Hidden files and folders are left out: where
// a ConfigMap is mounted they hold every file once more.
func manifestsUnder(directory string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return readError(err)
		}
		if path != directory && strings.HasPrefix(entry.Name(), ".") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) && !directoryBehind(path) {
			files = append(files, path)
		}
		if len(files) > maxFiles {
			return fmt.Errorf("it holds more than %d files", maxFiles)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = errors.New("it holds no .yaml, .yml or .json file")
	}
	return files, err
}

// directoryBehind reports whether path is a symbolic link to a directory.
func directoryBehind(path string) bool {
	status, err := os.Stat(path)
	return err == nil && status.IsDir()
}

// file reads one file. A file that the user named must hold something.
func file(path string, limit int64, named bool) []Document {
	f, err := os.Open(path)
	if err != nil {
		return failed(path, readError(err))
	}
	defer f.Close()
	text, err := readBounded(f, limit)
	if err != nil {
		return failed(path, err)
	}
	return split(path, text, named)
}

func readBounded(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, readError(err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("it is larger than %d MiB, the most that is read", limit>>20)
	}
	return text, nil
}

// readError leaves the path out of a file error: the message already begins with it.
func readError(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}

func failed(name string, err error) []Document {
	return []Document{{At: Source{File: name}, Err: err}}
}

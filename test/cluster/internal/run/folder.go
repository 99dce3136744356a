package run

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Folder is a folder below the temporary folder that belongs to one run.
type Folder struct {
	// Path is absolute. Its last element is unique on this machine.
	Path string

	lock *os.File
}

// lockName is the file in a folder whose lock its run holds. A folder whose lock is free belongs to a run
// that was killed.
const lockName = "lock"

// NewFolder makes a folder whose name starts with "gpuslice-", kind and a hyphen. It stays locked until
// Remove is called or this process ends.
func NewFolder(kind string) (*Folder, error) {
	// Under its final name only once it is locked, or a sweep would take it for a dead one.
	made, err := os.MkdirTemp("", "gpuslice-fresh-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	lock, err := TryLock(filepath.Join(made, lockName))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(filepath.Dir(made), "gpuslice-"+kind+filepath.Base(made)[len("gpuslice-fresh"):])
	if err := os.Rename(made, path); err != nil {
		lock.Close()
		return nil, fmt.Errorf("name folder: %w", err)
	}
	return &Folder{Path: path, lock: lock}, nil
}

// Remove removes the folder with all that is in it.
func (f *Folder) Remove() error {
	defer f.lock.Close()
	if err := os.RemoveAll(f.Path); err != nil {
		return fmt.Errorf("remove folder: %w", err)
	}
	return nil
}

// Sweep removes the folders of one kind whose run is gone, each after clean, which frees the run's other resources. A
// folder that cannot be cleaned or removed (another user's) stays.
func Sweep(kind string, clean func(path string) error) {
	paths, err := filepath.Glob(filepath.Join(os.TempDir(), "gpuslice-"+kind+"-*"))
	if err != nil {
		return // only a malformed pattern
	}
	for _, path := range paths {
		lock, err := TryLock(filepath.Join(path, lockName))
		if err != nil {
			continue
		}
		if clean(path) == nil {
			os.RemoveAll(path)
		}
		lock.Close()
	}
}

// TryLock opens path and takes its lock, or returns an error (unix.EWOULDBLOCK) at once if somebody else
// has it. The kernel releases it with the process, however that ends; closing the file releases it earlier.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

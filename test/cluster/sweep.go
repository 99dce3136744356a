package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Folders of clusters lie under the temporary folder. One is named fresh until its lock is held, so that
// a folder named live whose lock is free belongs to a process that was killed.
const (
	fresh   = "gpuslice-fresh-"
	live    = "gpuslice-cluster-"
	lockIts = "lock"
)

// newFolder makes a folder for a cluster. The lock is held until release is called or this process ends.
func newFolder() (dir string, release func(), err error) {
	made, err := os.MkdirTemp("", fresh)
	if err != nil {
		return "", nil, fmt.Errorf("make folder of cluster: %w", err)
	}
	lock, err := tryLock(filepath.Join(made, lockIts))
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(filepath.Dir(made), live+strings.TrimPrefix(filepath.Base(made), fresh))
	if err := os.Rename(made, dir); err != nil {
		lock.Close()
		return "", nil, fmt.Errorf("name folder of cluster: %w", err)
	}
	return dir, func() { lock.Close() }, nil
}

// sweep removes the folders of clusters whose process is gone. What cannot be removed (another user's) stays.
func sweep() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), live+"*"))
	if err != nil {
		return // only a malformed pattern
	}
	for _, dir := range dirs {
		lock, err := tryLock(filepath.Join(dir, lockIts))
		if err != nil {
			continue
		}
		os.RemoveAll(dir)
		lock.Close()
	}
}

// tryLock opens path and takes its lock, or returns an error at once if another process has it.
func tryLock(path string) (*os.File, error) {
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

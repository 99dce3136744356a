package proc

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// longestFile bounds what is read of one file under /proc: a tenant may make as
// many mounts as it likes.
const longestFile = 1 << 20

// source is where the table reads processes from.
type source interface {
	// read returns the text of a file of a process: "self" or a PID, and "stat",
	// "cgroup" or "mountinfo".
	read(process, file string) (string, error)
	// pids returns every process there is.
	pids() []int
}

// files is a mounted proc(5), or a folder laid out like one.
type files string

func (root files) read(process, file string) (string, error) {
	f, err := os.Open(filepath.Join(string(root), process, file))
	if err != nil {
		return "", fmt.Errorf("read process: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, longestFile))
	if err != nil {
		return "", fmt.Errorf("read process: %w", err)
	}
	return string(text), nil
}

func (root files) pids() []int {
	folder, err := os.Open(string(root))
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

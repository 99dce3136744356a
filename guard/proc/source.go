package proc

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// longestFile bounds what is read of one file under /proc: a tenant may make as
// many mounts as it likes.
const longestFile = 1 << 20

// Source is where processes are read from.
type Source interface {
	// Read returns the text of a file of a process: "self", a PID or "PID/task/TID",
	// and "stat", "status", "cgroup" or "mountinfo".
	Read(process, file string) (string, error)
	// Threads returns the first threads of a process.
	Threads(pid int) []int
	// PIDs returns every process there is.
	PIDs() []int
	// Now returns the time as start times count it.
	Now() uint64
}

// files is a mounted proc(5), or a folder laid out like one. It implements Source.
type files string

func (root files) Read(process, file string) (string, error) {
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

// Now implements Source: in clock ticks since boot, of which Linux reports 100 a
// second everywhere.
func (files) Now() uint64 {
	const clockBoottime, ticksPerSecond = 7, 100
	var t syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return uint64(t.Nano()) / uint64(time.Second/ticksPerSecond)
}

func (root files) PIDs() []int { return numbersIn(string(root), -1) }

func (root files) Threads(pid int) []int {
	const some = 16
	return numbersIn(filepath.Join(string(root), strconv.Itoa(pid), "task"), some)
}

// numbersIn returns the numbers among the first names in a folder; all: -1.
func numbersIn(path string, most int) []int {
	folder, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, err := folder.Readdirnames(most)
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

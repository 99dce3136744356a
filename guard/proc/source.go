package proc

import (
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// longestFile bounds the input of one file under /proc: a tenant may make as many
// mounts as it likes.
const longestFile = 1 << 20

// Source is where processes are read from.
type Source interface {
	// Read returns the text of a file of a process: "self", a PID or "PID/task/TID",
	// and "stat", "status", "cgroup" or "mountinfo".
	Read(process, file string) (string, error)
	// Threads yields the threads of a process, in the order in which they began.
	Threads(pid int) iter.Seq[int]
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
	const ticksPerSecond = 100
	return uint64(SinceBoot() / (time.Second / ticksPerSecond))
}

// SinceBoot returns the time on the clock that goes on while a process is stopped
// and while the node sleeps; 0 where it cannot be read.
func SinceBoot() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func (root files) PIDs() (pids []int) {
	for pid := range numbersIn(string(root)) {
		pids = append(pids, pid)
	}
	return pids
}

func (root files) Threads(pid int) iter.Seq[int] {
	return numbersIn(filepath.Join(string(root), strconv.Itoa(pid), "task"))
}

// numbersIn yields the numbers among the names in a folder.
func numbersIn(path string) iter.Seq[int] {
	return func(yield func(int) bool) {
		folder, err := os.Open(path)
		if err != nil {
			return
		}
		defer folder.Close()
		const atOnce = 256
		for {
			names, err := folder.Readdirnames(atOnce)
			for _, name := range names {
				if n, err := strconv.Atoi(name); err == nil && !yield(n) {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

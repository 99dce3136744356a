package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

const (
	// foreignAfter is how long a process of another program may be in the guard's
	// container.
	foreignAfter = time.Second
	// unknownAfter is how long a process may be there whose program cannot be read:
	// a probe closes its memory, and exits in a few seconds.
	unknownAfter = 15 * time.Second
	// startingAfter is how long a runtime may take to execute a probe: on a starved node
	// as long as the kubelet waits, two minutes and the probe's timeout. It is bounded,
	// since a program that is here already can clone itself so that it looks the same.
	startingAfter = 3 * time.Minute
	// walkPause is the least time between two walks through all processes, where the
	// cgroup cannot be read.
	walkPause = 30 * time.Second
)

// Intruders finds and terminates the processes in the guard's container that are not
// the guard's: the container sees every GPU of the node, and has no slice. It is
// not safe for concurrent use.
type Intruders struct {
	Table  *Table
	DryRun bool // terminates nothing

	seen   map[seenProcess]sighting
	walked time.Time
}

// sighting is since when a process is as it is, and whether it was returned.
type sighting struct {
	since    time.Time
	starting bool
	returned bool
}

// seenProcess is a process that was found in the guard's container.
type seenProcess struct {
	pid   int
	start uint64
}

// Terminate terminates each process that has been there for too long, and returns them.
func (i *Intruders) Terminate(now time.Time) []guard.Process {
	if !i.Table.SharesPIDs() || i.Table.kubelet.podUID == "" {
		return nil // the guard's supposed container may be another's
	}
	seen := map[seenProcess]sighting{}
	var ended []guard.Process
	for _, pid := range i.candidates(now) {
		s, where, _ := i.Table.locate(pid)
		if where != own || i.Table.guards(s) {
			continue
		}
		key := seenProcess{pid, s.start}
		at, known := i.seen[key]
		if !known || at.starting && !s.starting() {
			at = sighting{since: now, starting: s.starting()}
		}
		if !at.returned && now.Sub(at.since) >= i.patience(s) && i.end(s) {
			at.returned = true
			ended = append(ended, guard.Process{PID: pid, Start: s.start, Command: s.command})
		}
		seen[key] = at
	}
	i.seen = seen
	return ended
}

// guards reports whether it is the guard itself, or a program that it started.
func (t *Table) guards(s stat) bool { return s.pid == t.self || s.parent == t.self }

// patience returns how long a process may be in the guard's container.
func (i *Intruders) patience(s stat) time.Duration {
	if s.starting() {
		return startingAfter
	}
	ours, err := os.Stat(filepath.Join(i.Table.root, "self/exe"))
	if err != nil {
		return unknownAfter
	}
	program, err := os.Stat(filepath.Join(i.Table.root, s.dir, "exe"))
	if err != nil || os.SameFile(ours, program) {
		return unknownAfter
	}
	return foreignAfter
}

func (i *Intruders) end(s stat) bool {
	if i.DryRun {
		return true
	}
	fd, err := openPidfd(s.pid)
	if err != nil {
		return false
	}
	defer fd.Release()
	now, where, _ := i.Table.locate(s.pid)
	// The PID may have become another process's before the pidfd was opened.
	if fd.Exited() || where != own || now.start != s.start || i.Table.guards(now) {
		return false
	}
	return fd.Signal(syscall.SIGKILL) == nil
}

// candidates returns the processes that may be in the guard's container.
func (i *Intruders) candidates(now time.Time) []int {
	for _, file := range i.Table.cgroupProcs {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var pids []int
		for line := range strings.Lines(string(text)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	if now.Sub(i.walked) < walkPause {
		return nil
	}
	i.walked = now
	return i.Table.source.PIDs()
}

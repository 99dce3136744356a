package proc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// forkedWithoutExec is PF_FORKNOEXEC of the kernel's sched.h.
const forkedWithoutExec = 0x40

// stat contains the fields of /proc/<pid>/stat that the guard needs.
type stat struct {
	pid     int
	command string
	state   byte // 'Z' or 'X': its first thread has exited
	parent  int  // 0: outside this PID namespace
	start   uint64
	forked  bool   // it has executed no program since it was forked
	dir     string // under /proc, of a thread that lives; empty: none does
	unread  bool   // it has too many threads to find one that lives: dir is an ancestor's, or empty
}

func (s stat) exited() bool { return s.dir == "" && !s.unread }

// starting reports whether a container runtime, whose processes have their parent
// outside this PID namespace, has not executed the program yet.
func (s stat) starting() bool { return s.forked && s.parent == 0 }

// ended reports whether the first thread has exited.
func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' }

// parseStat reads the text of /proc/<pid>/stat. The command may hold anything,
// parentheses and spaces too, so the command is up to the last one.
func parseStat(text string) (stat, error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return stat{}, fmt.Errorf("parse stat: no command in %.40q", text)
	}
	fields := strings.Fields(text[end+1:])
	const state, parent, flags, start = 0, 1, 6, 19 // fields 3, 4, 9 and 22 of proc_pid_stat(5)
	if len(fields) <= start {
		return stat{}, fmt.Errorf("parse stat: %d fields after the command", len(fields))
	}
	s := stat{command: printable(text[open+1 : end]), state: fields[state][0]}
	var bits uint64
	var errs [4]error
	s.pid, errs[0] = strconv.Atoi(strings.TrimSpace(text[:open]))
	s.parent, errs[1] = strconv.Atoi(fields[parent])
	bits, errs[2] = strconv.ParseUint(fields[flags], 10, 64)
	s.start, errs[3] = strconv.ParseUint(fields[start], 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return stat{}, fmt.Errorf("parse stat: %w", err)
	}
	s.forked = bits&forkedWithoutExec != 0
	return s, nil
}

// printable replaces characters with which a tenant's command name may confuse
// readers.
func printable(command string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, command)
}

package proc

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// stat is what the guard needs of /proc/<pid>/stat.
type stat struct {
	pid     int
	command string
	state   byte // 'Z' or 'X': its first thread has exited
	parent  int  // 0: outside this PID namespace
	start   uint64
	dir     string // under /proc, of a thread that lives; empty: none does
	unread  bool   // it has too many threads to find one that lives: dir is an ancestor's, or empty
}

func (s stat) exited() bool { return s.dir == "" && !s.unread }

// ended reports whether the first thread has exited.
func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' }

// parseStat reads the text of /proc/<pid>/stat. The command may hold anything,
// parentheses and spaces too, so it ends at the last one.
func parseStat(text string) (stat, error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return stat{}, fmt.Errorf("parse stat: no command in %.40q", text)
	}
	fields := strings.Fields(text[end+1:])
	const state, parent, start = 0, 1, 19 // fields 3, 4 and 22 of proc_pid_stat(5)
	if len(fields) <= start {
		return stat{}, fmt.Errorf("parse stat: %d fields after the command", len(fields))
	}
	s := stat{command: printable(text[open+1 : end]), state: fields[state][0]}
	var err error
	if s.pid, err = strconv.Atoi(strings.TrimSpace(text[:open])); err != nil {
		return stat{}, fmt.Errorf("parse stat: %w", err)
	}
	if s.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return stat{}, fmt.Errorf("parse stat: %w", err)
	}
	if s.start, err = strconv.ParseUint(fields[start], 10, 64); err != nil {
		return stat{}, fmt.Errorf("parse stat: %w", err)
	}
	return s, nil
}

// printable replaces what a tenant may have put into its command's name to
// confuse who reads it.
func printable(command string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, command)
}

package proc

import (
	"strconv"
)

// longestAncestry bounds the walk from a process to its ancestors: a tenant may
// nest as many as it likes.
const longestAncestry = 64

// reader reads processes. Use newReader.
type reader struct {
	source  Source
	threads *threads
}

func newReader(from Source) reader { return reader{from, &threads{source: from}} }

// Now returns the time as start times count it.
func (r reader) Now() uint64 { return r.source.Now() }

// stat returns a PID's fields, and whether it is a process. If it has too many
// threads to find one that lives, it is read where an ancestor is, since a child is
// in the pod of its parent.
func (r reader) stat(pid int) (stat, bool) {
	s, err := readStat(r.source, strconv.Itoa(pid))
	if err != nil || s.pid != pid {
		return stat{}, false
	}
	if s.dir = strconv.Itoa(pid); s.ended() {
		s.dir, s.unread = r.threads.living(s)
	}
	if s.unread {
		s.dir = r.ancestor(s)
	}
	return s, true
}

// ancestor returns where the nearest ancestor can be read whose first thread lives;
// empty: there is none.
func (r reader) ancestor(s stat) string {
	for range longestAncestry {
		parent, err := readStat(r.source, strconv.Itoa(s.parent))
		if err != nil {
			break
		}
		if !parent.ended() {
			return strconv.Itoa(parent.pid)
		}
		s = parent
	}
	return ""
}

// lives reports whether the process with that PID and start time has a thread that
// may live.
func (r reader) lives(pid int, start uint64) bool {
	s, found := r.stat(pid)
	return found && s.start == start && !s.exited()
}

func readStat(from Source, dir string) (stat, error) {
	text, err := from.Read(dir, "stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(text)
}

package proc

import "strconv"

// reader reads processes.
type reader struct{ source Source }

// Now returns the time as start times count it.
func (r reader) Now() uint64 { return r.source.Now() }

// stat returns what a PID is, and whether it is a process.
func (r reader) stat(pid int) (stat, bool) {
	text, err := r.source.Read(strconv.Itoa(pid), "stat")
	if err != nil {
		return stat{}, false
	}
	s, err := parseStat(text)
	if err != nil || s.pid != pid {
		return stat{}, false
	}
	s.dir = r.living(s)
	return s, true
}

// living returns where a process can be read: where its first thread has exited,
// a thread that lives, since the kernel tells nothing more of the first.
func (r reader) living(s stat) string {
	dir := strconv.Itoa(s.pid)
	if s.state != 'Z' && s.state != 'X' {
		return dir
	}
	for _, tid := range r.source.Threads(s.pid) {
		at := dir + "/task/" + strconv.Itoa(tid)
		text, err := r.source.Read(at, "stat")
		if err != nil || tid == s.pid {
			continue
		}
		if thread, err := parseStat(text); err == nil && thread.state != 'Z' && thread.state != 'X' {
			return at
		}
	}
	return ""
}

package proc

import "strconv"

// identify returns what the container with that cgroup is called. It is learnt
// once, from the container's first process rather than from the one that is
// asked about, and kept while the cgroup has processes: a process can make
// mounts of its own, and a cgroup cannot be left without privilege. A name that
// another live cgroup has is not given twice.
func (t *Table) identify(key string, s stat) identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, pinned := t.pins[key]; pinned {
		return id
	}
	text, err := t.source.read(strconv.Itoa(t.first(key, s)), "mountinfo")
	if err != nil {
		return identity{}
	}
	id, err := parseMounts(text)
	if err != nil || t.pod != "" && id.podUID != t.pod {
		return identity{}
	}
	for other, taken := range t.pins {
		if taken.container != id.container {
			continue
		}
		if len(t.members(other)) > 0 {
			return identity{}
		}
		delete(t.pins, other)
	}
	t.pins[key] = id
	return id
}

// first returns the process of the container that the runtime started: its
// parent is outside the PID namespace.
func (t *Table) first(key string, s stat) int {
	if s.parent == 0 {
		return s.pid
	}
	for _, m := range t.members(key) {
		if m.parent == 0 {
			return m.pid
		}
	}
	return s.pid
}

// members returns the live processes of the container with that cgroup.
func (t *Table) members(key string) []stat {
	var members []stat
	for _, pid := range t.source.pids() {
		if s, where, at := t.find(pid); where != elsewhere && at == key && !s.exited() {
			members = append(members, s)
		}
	}
	return members
}

// containerKey returns the cgroup of the container with that name.
func (t *Table) containerKey(name string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, id := range t.pins {
		if id.container == name {
			return key, true
		}
	}
	return "", false
}

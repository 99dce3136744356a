package proc

import "strconv"

// identify returns the identity of the container with that cgroup. It is read
// once, from the container's first process rather than from s, and kept while the
// cgroup has processes: a process can make mounts of its own, and a cgroup cannot
// be left without privilege. A name that another live cgroup has is not given
// twice.
func (t *Table) identify(cgroup string, s stat) identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, known := t.identities[cgroup]; known {
		return id
	}
	text, err := t.source.read(strconv.Itoa(t.first(cgroup, s)), "mountinfo")
	if err != nil {
		return identity{}
	}
	id, err := parseMounts(text)
	if err != nil || t.pod != "" && id.podUID != t.pod {
		return identity{}
	}
	for other, taken := range t.identities {
		// A name is free again once the container that had it has no process.
		if taken.container != id.container {
			continue
		}
		if len(t.members(other)) > 0 {
			return identity{}
		}
		delete(t.identities, other)
	}
	t.identities[cgroup] = id
	return id
}

// first returns the process of the container that the runtime started: its
// parent is outside the PID namespace.
func (t *Table) first(cgroup string, s stat) int {
	if s.parent == 0 {
		return s.pid
	}
	for _, m := range t.members(cgroup) {
		if m.parent == 0 {
			return m.pid
		}
	}
	return s.pid
}

// members returns the live processes of the container with that cgroup.
func (t *Table) members(cgroup string) []stat {
	var members []stat
	for _, pid := range t.source.pids() {
		if s, where, at := t.find(pid); where != elsewhere && at == cgroup && !s.exited() {
			members = append(members, s)
		}
	}
	return members
}

// cgroupOf returns the cgroup of the container with that name.
func (t *Table) cgroupOf(name string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for cgroup, id := range t.identities {
		if id.container == name {
			return cgroup, true
		}
	}
	return "", false
}

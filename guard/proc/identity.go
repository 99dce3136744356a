package proc

import "time"

// nameRetry is how long the name of a container is not looked up again after a
// failure: a lookup may walk through all processes there are.
const nameRetry = 5 * time.Second

// identify returns the identity of the container with that cgroup. It is read
// once, from the container's first process rather than from s, and kept while the
// cgroup has processes: a process can make mounts of its own, and a cgroup cannot
// be left without privilege. A name that another live cgroup has is not used
// again.
func (t *Table) identify(cgroup string, s stat) identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, known := t.identities[cgroup]; known {
		return id
	}
	if failed, asked := t.unnamed[cgroup]; asked && time.Since(failed) < t.nameRetry {
		return identity{}
	}
	id, ok := t.readIdentity(cgroup, s)
	if !ok {
		t.unnamed[cgroup] = time.Now()
		return identity{}
	}
	delete(t.unnamed, cgroup)
	t.identities[cgroup] = id
	return id
}

func (t *Table) readIdentity(cgroup string, s stat) (identity, bool) {
	text, err := t.source.Read(t.first(cgroup, s).dir, "mountinfo")
	if err != nil {
		return identity{}, false
	}
	id, err := t.kubelet.identify(text)
	if err != nil {
		return identity{}, false
	}
	for other, taken := range t.identities {
		// A name is free again once the container that had it has no process.
		if taken.container != id.container {
			continue
		}
		if len(t.members(other)) > 0 {
			return identity{}, false
		}
		delete(t.identities, other)
	}
	return id, true
}

// first returns the oldest ancestor of a process in its container: the process that
// the runtime started, whose parent is outside the PID namespace, or the child of
// an exited parent.
func (t *Table) first(cgroup string, s stat) stat {
	for range longestAncestry {
		if s.parent == 0 {
			return s
		}
		parent, where, at := t.locate(s.parent)
		if where == elsewhere || at != cgroup {
			return s
		}
		s = parent
	}
	return s
}

// members returns the live processes of the container with that cgroup.
func (t *Table) members(cgroup string) []stat {
	var members []stat
	for _, pid := range t.source.PIDs() {
		if s, where, at := t.locate(pid); where != elsewhere && at == cgroup && !s.exited() {
			members = append(members, s)
		}
	}
	return members
}

// instance implements Processes.
func (t *Table) instance(container string) (key string, able bool) {
	key, _ = t.cgroupOf(container)
	return key, key != t.ours && key != t.init
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

package proc

import (
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/guard"
)

// Nested reports whether a process that the order names may live in a PID
// namespace below the pod's: one that cannot be read may.
func (t *Table) Nested(o guard.Order) bool {
	if o.Kind != guard.TerminateContainer {
		s, _, _ := t.locate(o.Process.PID)
		return t.nested(s)
	}
	cgroup, _ := t.cgroupOf(o.Container)
	return slices.ContainsFunc(t.members(cgroup), t.nested)
}

// nested reads the process's numbers in each PID namespace from the pod's on.
func (t *Table) nested(s stat) bool {
	text, err := t.source.Read(s.dir, "status")
	if s.dir == "" || err != nil {
		return true
	}
	for line := range strings.Lines(text) {
		if numbers, found := strings.CutPrefix(line, "NSpid:"); found {
			return len(strings.Fields(numbers)) != 1
		}
	}
	return true
}

package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGroups(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 11, 22, 12, 0, second, 0, time.UTC) }
	pods := groupNamed([]podRow{{"a", running, "4Gi", "guard"}, {"b", pending, "4Gi", "guard"}, {"c", running, "4Gi", "guard"},
		{"d", running, "4Gi", "guard"}, {"e", running, "4Gi", "none"}},
		func(r *podRow) *string { return &r.Name })
	if diff := cmp.Diff([]podRow{{"a, c and 1 more", running, "4Gi", "guard"}, {"b", pending, "4Gi", "guard"}, {"e", running, "4Gi", "none"}},
		pods); diff != "" {
		t.Errorf("pods: %s", diff)
	}
	nodes := groupNamed([]node{{"n1", "r", 4, 0, ""}, {"n2", "r", 4, 0, ""}, {"n3", "r", 8, 0, ""}, {"n4", "r", 4, 1, ""}},
		func(n *node) *string { return &n.Name })
	if diff := cmp.Diff([]node{{"n1, n2", "r", 4, 0, ""}, {"n3", "r", 8, 0, ""}, {"n4", "r", 4, 1, ""}}, nodes); diff != "" {
		t.Errorf("nodes: %s", diff)
	}
	events := groupEvents([]event{
		{at(1), "replicaset/a", "gpuslice", "Denied", "too large", 2, true}, {at(2), "pod/b", "kubelet", "Failed", "no image", 1, false},
		{at(3), "deployment/a", "gpuslice", "Denied", "too large", 1, true}, {at(4), "replicaset/a", "gpuslice", "Denied", "no quota", 1, true},
	})
	want := []event{
		{at(2), "pod/b", "kubelet", "Failed", "no image", 1, false},
		{at(3), "deployment/a, replicaset/a", "gpuslice", "Denied", "too large", 3, true},
		{at(4), "replicaset/a", "gpuslice", "Denied", "no quota", 1, true},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events: %s", diff)
	}
}

package node

import (
	"testing"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
)

// TestSampleOf: among everybody's processes, a pod's own are named, so that memory
// which one of them frees by its exit is not taken for a neighbor's.
func TestSampleOf(t *testing.T) {
	t.Parallel()
	d := Device{Device: guard.Device{ID: "gpu0"}}
	for pid, uid := range map[int]string{1: "a", 2: "b"} {
		p := guard.Process{PID: pid}
		d.Everyone = append(d.Everyone, p)
		d.Processes = append(d.Processes, Process{Process: p, Member: cgroup.Member{PodUID: uid, ContainerID: "c"}})
	}
	s := Sample{Devices: []Device{d}}
	for _, uid := range []string{"a", "b"} {
		part := s.of(Pod{UID: uid, Containers: map[string]string{"c": "trainer"}}, map[string]bool{})
		if !part.ByAgent {
			t.Errorf("pod %s alone reports that the sample came late", uid)
		}
		for i, p := range part.Devices[0].Everyone {
			want := ""
			if d.Processes[i].Member.PodUID == uid {
				want = "trainer"
			}
			if p.Container != want {
				t.Errorf("pod %s: pid %d is of container %q, want %q", uid, p.PID, p.Container, want)
			}
		}
	}
	if d.Everyone[0].Container != "" {
		t.Error("the sample of all pods is changed")
	}
}

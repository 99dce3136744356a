package snapshot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
)

// TestOthers: network cards, amounts of other systems and cards of virtual machines are no GPUs.
func TestOthers(t *testing.T) {
	f := fixture()
	with(f, inventory.Pod{Node: "a", Phase: corev1.PodRunning}, "nvidia.com/gpu", 1)
	for _, name := range []string{"nvidia.com/hostdev", "nvidia.com/gpumem", "nvidia.com/TU104GL_TESLA_T4"} {
		f.Pods[0].Requests[name] = 8
	}
	with(f, inventory.Pod{Phase: corev1.PodPending}, "nvidia.com/hostdev", 8)
	out, _ := Read(f, Options{Sizes: Requested, Peak: "max"})
	if len(out.Pods) != 1 || out.Pods[0].Devices != 1 || len(out.Pods[0].Requests) != 1 {
		t.Errorf("%+v", out.Pods)
	}
}

// TestInstances: a pod with more instances than a GPU has room for holds several GPUs, and fits where it runs.
func TestInstances(t *testing.T) {
	for _, c := range []struct {
		count   int64
		devices int
	}{{1, 1}, {7, 1}, {8, 2}, {14, 2}, {100, 2}} { // node c has two GPUs
		f := fixture()
		with(f, inventory.Pod{Node: "c", Phase: corev1.PodRunning}, "nvidia.com/mig-1g.10gb", c.count)
		out, _ := Read(f, Options{Sizes: Requested, Peak: "max"})
		if len(out.Pods) != 1 || out.Pods[0].Devices != c.devices || out.FitsNowhere(&out.Pods[0]) {
			t.Errorf("%d instances: %+v", c.count, out.Pods)
		}
	}
}

// TestUnknownCount: pods on nodes whose GPUs nobody knows are left out with them, and do not seem to wait.
func TestUnknownCount(t *testing.T) {
	f := fixture()
	f.Nodes[0].GPUs = inventory.GPUs{}
	with(f, inventory.Pod{Node: "a", Phase: corev1.PodRunning}, "nvidia.com/gpu", 2)
	out, notes := Read(f, Options{Sizes: Requested, Peak: "max"})
	if text := strings.Join(notes, ";"); len(out.Pods) != 0 || !strings.Contains(text, "1 pods run on nodes with an unknown number of GPUs") {
		t.Errorf("%+v, %s", out.Pods, text)
	}
}

package doctor

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestOffered: network cards, amounts of other systems and cards for virtual machines are no GPUs of a node; what a pool offers is.
func TestOffered(t *testing.T) {
	declared := defaultPolicy("pools: {declared: [{name: special, selector: {example.com/gpus: special}, resource: nvidia.com/special, " +
		"strategy: time-slicing, deviceMemory: 23034Mi, replicas: 4, driver: 580.95.05}]}\n")
	f := facts(t, nodes("l4-timeslicing-renamed"), declared)
	n := f.Nodes[0]
	n.Labels["example.com/gpus"] = "special"
	n.Status.Allocatable = corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "nvidia.com/hostdev", "nvidia.com/gpumem", "nvidia.com/TU104GL_TESLA_T4",
		"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/special"} {
		n.Status.Allocatable[name] = resource.MustParse("4")
	}
	want := []string{"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "nvidia.com/special"}
	if got := f.offered(n); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	n.Status.Allocatable = corev1.ResourceList{"nvidia.com/hostdev": resource.MustParse("8")}
	if got := gpuNodes(facts(t, func(_ *testing.T, other *Facts) { other.Nodes = f.Nodes[:1] })); len(got) != 0 {
		t.Error("a node with network cards alone is taken for one with GPUs")
	}
}

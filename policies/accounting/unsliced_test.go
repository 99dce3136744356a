package accounting_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// TestWithoutSlice: a pod without a slice takes whole devices, and of a divided one the part that its units are, so that the pods of a
// node take no more than it has.
func TestWithoutSlice(t *testing.T) {
	t.Parallel()
	nodes := map[string]string{}
	var all []*corev1.Node
	for _, kind := range []string{"a100-plain", "l4-timeslicing-renamed", "a100-mig-mixed"} {
		found, err := scenarios.Nodes(kind)
		if err != nil {
			t.Fatal(err)
		}
		all, nodes[kind] = append(all, found...), found[0].Name
	}
	offered := pools.FromNodes(all, config.PoolsSpec{}, nil)
	const other = "nvidia.com/gpu.shared"
	names := func(resources ...string) (out []corev1.Container) {
		for _, name := range resources {
			out = append(out, corev1.Container{
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("2")}},
			})
		}
		return out
	}
	for name, c := range map[string]struct {
		node              string
		inits, containers []corev1.Container
		want              string
	}{
		"no GPU":                   {"a100-plain", nil, names("cpu", "rdma/hca"), "0 0Mi "},
		"whole devices":            {"a100-plain", nil, names(api.ResourceGPU, api.ResourceGPU), "4 327680Mi nvidia.com/gpu"},
		"one before the others":    {"a100-plain", names(api.ResourceGPU, api.ResourceGPU), names(api.ResourceGPU), "2 163840Mi nvidia.com/gpu"},
		"replicas":                 {"l4-timeslicing-renamed", nil, names(other), "0.5 11516Mi nvidia.com/gpu.shared"},
		"instances":                {"a100-mig-mixed", nil, names("nvidia.com/mig-1g.10gb"), "0.286 19456Mi nvidia.com/mig-1g.10gb"},
		"what nobody offers":       {"a100-plain", nil, names("nvidia.com/mig-7g.999gb"), "2 0Mi "},
		"what its node offers not": {"a100-plain", nil, names(other), "2 0Mi nvidia.com/gpu.shared"},
	} {
		charge, pool, named := accounting.WithoutSlice(
			&corev1.Pod{Spec: corev1.PodSpec{NodeName: nodes[c.node], InitContainers: c.inits, Containers: c.containers}}, offered)
		if got := fmt.Sprintf("%s %dMi %s", charge.Devices, charge.Memory, named); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if known := pool != ""; known != (charge.Memory > 0) {
			t.Errorf("%s: its pool is %q", name, pool)
		}
	}
}

// TestClaimsOfClass holds that the claim of an init container counts beside those of the others: the pod keeps it.
func TestClaimsOfClass(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "prepare"}},
		Containers: []corev1.Container{{Name: "main"}}}}
	for claim, want := range map[string]api.MiB{"gpuslice-": 8192, "": 4096} {
		p := &promise.Promise{Strategy: "time-slicing"}
		for _, name := range []string{"prepare", "main"} {
			c := promise.Container{Name: name, Count: 1, Slice: 4096, Class: "small"}
			if claim != "" {
				c.Claim, c.Template = claim+name, "gpuslice-4396mi"
			}
			p.Containers = append(p.Containers, c)
		}
		if got := accounting.Holding(p, pod).Classes["small"].Memory; got != want {
			t.Errorf("claims %q...: the class holds %s, want %s", claim, got, want)
		}
	}
}

package policies_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

func TestProvenMinimum(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, policy string
		proven       []api.Tier
		denied       bool
	}{
		{"nothing is proven, nor demanded", "minimumEnforcement: guard\n", nil, false},
		{"it is proven", "minimumEnforcement: {tier: guard, proven: true}\n", []api.Tier{api.TierFramework, api.TierGuard}, false},
		{"nothing is proven", "minimumEnforcement: {tier: guard, proven: true}\n", nil, true},
		{"another tier is proven", "minimumEnforcement: {tier: guard, proven: true}\n", []api.Tier{api.TierMPS}, true},
		{"it is proven, and not planned", "minimumEnforcement: {tier: guard, proven: true}\nguard: {enabled: false}\n",
			[]api.Tier{api.TierGuard}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in, pod := brought(t, tt.policy)
			in.Pod = pod
			for i := range in.Pools {
				in.Pools[i].Proven = tt.proven
			}
			d := policies.Decide(in)
			if denied := d.IfEnforced == policies.Denied; denied != tt.denied || (denied && d.Violations[0].Rule != api.RuleEnforcement) {
				t.Errorf("%s: %v", d.IfEnforced, d.Violations)
			}
		})
	}
	t.Run("pools that are as good and not proven are left out", func(t *testing.T) {
		t.Parallel()
		in, pod := brought(t, "minimumEnforcement: {tier: guard, proven: true}\n")
		in.Pod = pod
		twin := in.Pools[0]
		twin.Name, twin.Site = twin.Name+"-twin", twin.Site+"-twin"
		in.Pools[0].Proven = []api.Tier{api.TierGuard}
		in.Pools = append(in.Pools, twin)
		if d := policies.Decide(in); d.IfEnforced != policies.Mutated || len(d.Promise.Pools) != 1 || d.Promise.Pools[0] != in.Pools[0].Name {
			t.Errorf("%s on %v: %v", d.IfEnforced, d.Promise, d.Violations)
		}
		in.Policy.MinimumEnforcement.Proven = false
		if d := policies.Decide(in); d.IfEnforced != policies.Mutated || len(d.Promise.Pools) != 2 {
			t.Errorf("without a demand for proof, %s on %v", d.IfEnforced, d.Promise)
		}
	})
	t.Run("each container's pool is proven", func(t *testing.T) {
		t.Parallel()
		in, pod := brought(t, "minimumEnforcement: {tier: guard, proven: true}\n")
		in.Pod = pod
		other := in.Pools[0]
		other.Name, other.Resource = "other", "nvidia.com/gpu.other"
		in.Pools = []pools.Pool{in.Pools[0], other}
		in.Pools[0].Proven = []api.Tier{api.TierGuard}
		pod.Spec.Containers = append(pod.Spec.Containers, asksGPU("side"))
		for i, name := range []corev1.ResourceName{"nvidia.com/gpu.shared", "nvidia.com/gpu.other"} {
			one := corev1.ResourceList{name: resource.MustParse("1")}
			pod.Spec.Containers[i].Resources = corev1.ResourceRequirements{Limits: one, Requests: one}
		}
		if d := policies.Decide(in); d.IfEnforced != policies.Denied ||
			!strings.Contains(d.Message(), "verify --on-gpu -n NAMESPACE --pool other") {
			t.Errorf("%s: %v", d.IfEnforced, d.Violations)
		}
		in.Pools[1].Proven = in.Pools[0].Proven
		if d := policies.Decide(in); d.IfEnforced != policies.Mutated {
			t.Errorf("with both proven, %s: %v", d.IfEnforced, d.Violations)
		}
	})
}

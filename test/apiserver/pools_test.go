package apiserver

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestReplicasChange is what a platform team does any day: the device plugin of the only nodes shares GPUs in other parts.
func TestReplicasChange(t *testing.T) {
	t.Run("pods go to what nodes offer now", func(t *testing.T) {
		a := attacker(t, "", nil)
		halved := nodesOf(t, "l4-timeslicing-renamed")
		for _, n := range halved {
			gpus := resource.MustParse(n.Labels["nvidia.com/gpu.count"])
			n.Labels["nvidia.com/gpu.replicas"] = "2"
			n.Status.Allocatable["nvidia.com/gpu.shared"] = *resource.NewQuantity(2*gpus.Value(), resource.DecimalSI)
			n.Status.Capacity["nvidia.com/gpu.shared"] = n.Status.Allocatable["nvidia.com/gpu.shared"]
		}
		a.moveTo(halved...)
		if got := replicasOf(a.made("after", slice("", "", ""))); !slices.Contains(got, "2") {
			t.Errorf("the pod may run on nodes with %q replicas, and those that exist have 2", got)
		}
	})
}

// replicasOf are the numbers of replicas that a pod's affinity allows.
func replicasOf(pod *corev1.Pod) []string {
	var out []string
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if strings.HasSuffix(e.Key, "/gpu.replicas") {
				out = append(out, e.Values...)
			}
		}
	}
	return out
}

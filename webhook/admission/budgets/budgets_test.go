package budgets

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster/clustertest"
)

// TestBudgetsWithoutSlice: a pod without a slice is charged where a policy governs it, or one that cannot be read may.
func TestBudgetsWithoutSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.Namespace("free", nil), clustertest.SharedL4(t, "l4"),
			clustertest.PolicyMap("a", 10, "namespaces: {names: [team-a]}"))
		w, end := start(t, client)
		defer end()
		for name, c := range map[string]struct {
			namespace, node, resource string
			devices, unknown          string // the name of a resource whose pool is not known
			known                     bool
		}{
			"ungoverned":                  {"free", "l4", "nvidia.com/gpu.shared", "0", "", false},
			"on a node of a pool":         {"team-a", "l4", "nvidia.com/gpu.shared", "0.25", "", true},
			"on a node that is not known": {"team-a", "away", api.ResourceGPU, "1", api.ResourceGPU, false},
		} {
			one := corev1.ResourceList{corev1.ResourceName(c.resource): resource.MustParse("1")}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "p"}, Spec: corev1.PodSpec{NodeName: c.node,
				Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: one, Requests: one}}}}}
			charge, pool, known := NewBudgets(w).WithoutSlice(pod)
			if charge.Devices.String() != c.devices || known != c.known || !known && pool != c.unknown || known && (pool == "" || pool == c.resource) {
				t.Errorf("%s: %+v in %q, known %v", name, charge, pool, known)
			}
		}
	})
}

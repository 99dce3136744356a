package budgets

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/clustertest"
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
			if charge.Devices.String() != c.devices || known != c.known ||
				!known && pool != c.unknown || known && (pool == "" || pool == c.resource) {
				t.Errorf("%s: %+v in %q, known %v", name, charge, pool, known)
			}
		}
	})
}

// TestBudgetsOfNamespaces: namespaces share a budget with its limits, once, and keep those of their own documents.
func TestBudgetsOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.Namespace("team-b", nil),
			clustertest.PolicyMap("ml", 10, "quota: {budget: ml, slices: 4}"), clustertest.TenantMap("team-b", "quota: {slices: 2}"))
		w, end := start(t, client)
		defer end()
		b := NewBudgets(w)
		shared := func() (all []string) {
			for _, one := range b.All() {
				all = append(all, one.Key+" "+strings.Join(one.Namespaces, " "))
			}
			return all
		}
		if diff := cmp.Diff([]string{"shared/ml team-a team-b"}, shared()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		var names []string
		for _, l := range b.Limits()["shared/ml"].Limits {
			names = append(names, l.Name)
		}
		if diff := cmp.Diff([]string{"ml", "team-b/" + api.TenantPolicyName}, names); diff != "" {
			t.Errorf("limits (-want +got)\n%s", diff)
		}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), clustertest.Namespace("team-c", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		clustertest.Settle()
		if diff := cmp.Diff([]string{"shared/ml team-a team-b team-c"}, shared()); diff != "" {
			t.Errorf("once there is another namespace (-want +got)\n%s", diff)
		}
	})
}

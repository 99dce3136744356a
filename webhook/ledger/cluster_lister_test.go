package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/quota"
)

func TestClusterListerCache(t *testing.T) {
	read, generation := map[string]int{}, 1
	l := &ClusterLister{Generation: func(string) any { return generation }, HoldingOf: func(p *corev1.Pod) (quota.Holding, ChargeBasis) {
		read[p.Name]++
		basis := BasisPromise
		if p.Name == "unmanaged" || p.Name == "claims" {
			basis = BasisUnmanaged
		}
		return quota.Holding{Namespace: "a", Charge: quota.Charge{Slices: int64(read[p.Name])}}, basis
	}}
	pod := func(name, version string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version},
			Spec: corev1.PodSpec{Containers: []corev1.Container{requesting("example.com/any")}}}
	}
	list := func(namespace string, all []corev1.Pod) []Pod {
		pods := l.collect(namespace)
		for i := range all {
			_ = pods.add(&all[i])
		}
		l.remember(namespace, pods.seen)
		return pods.holding
	}
	plain := pod("plain", "1")
	plain.Spec.Containers = []corev1.Container{requesting(corev1.ResourceCPU)}
	list("a", []corev1.Pod{pod("same", "1"), pod("changes", "1"), pod("unmanaged", "1"), plain})
	got := list("a", []corev1.Pod{pod("same", "1"), pod("changes", "2"), pod("unmanaged", "1")})
	list("b", []corev1.Pod{pod("same", "1")})
	list("a", nil)
	generation++
	claims := pod("claims", "1")
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	list("a", []corev1.Pod{pod("same", "1"), pod("unmanaged", "1"), claims})
	list("a", []corev1.Pod{pod("same", "1"), pod("unmanaged", "1"), claims})
	generation++
	list("a", []corev1.Pod{pod("same", "1"), pod("unmanaged", "1")})
	want := map[string]int{"same": 3, "changes": 2, "unmanaged": 3, "claims": 2}
	if diff := cmp.Diff(want, read); diff != "" || len(got) != 3 || got[0].Holding.Charge.Slices != 1 || got[1].Holding.Charge.Slices != 2 {
		t.Errorf("%+v; reads (-want +got)\n%s", got, diff)
	}
}

package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies"
)

func TestClusterListerCache(t *testing.T) {
	read := map[string]int{}
	l := &ClusterLister{HoldingOf: func(p *corev1.Pod) (policies.Holding, ChargeBasis) {
		read[p.Name]++
		basis := BasisPromise
		if p.Name == "unmanaged" {
			basis = BasisUnmanaged
		}
		return policies.Holding{Namespace: "a", Charge: policies.Charge{Slices: int64(read[p.Name])}}, basis
	}}
	pod := func(name, version string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
	}
	l.podsOf("a", []corev1.Pod{pod("same", "1"), pod("changes", "1"), pod("unmanaged", "1")})
	got := l.podsOf("a", []corev1.Pod{pod("same", "1"), pod("changes", "2"), pod("unmanaged", "1")})
	l.podsOf("b", []corev1.Pod{pod("same", "1")})
	l.podsOf("a", nil)
	l.podsOf("a", []corev1.Pod{pod("same", "1")})
	want := map[string]int{"same": 3, "changes": 2, "unmanaged": 2}
	if diff := cmp.Diff(want, read); diff != "" || len(got) != 3 || got[0].Holding.Charge.Slices != 1 || got[1].Holding.Charge.Slices != 2 {
		t.Errorf("%+v; reads (-want +got)\n%s", got, diff)
	}
}

package nativequota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/test/boundedtest"
)

// TestQuotasAreSmall: of the largest ResourceQuotas that the API server takes a bounded part is kept.
func TestQuotasAreSmall(t *testing.T) {
	got := boundedtest.KeptOf(t, trim, func(i int) runtime.Object {
		q := &corev1.ResourceQuota{ObjectMeta: boundedtest.Meta(i, 500<<10), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}},
			Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{}}}
		for _, name := range boundedtest.Texts(5000, 60) {
			q.Spec.Hard[corev1.ResourceName("requests.example.com/"+name)] = resource.MustParse("1")
			q.Status.Hard[corev1.ResourceName("requests.example.com/"+name)] = resource.MustParse("1")
		}
		return q
	})
	if got > 4<<10 {
		t.Errorf("%d bytes are kept of one", got)
	}
}

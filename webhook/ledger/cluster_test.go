package ledger

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies"
)

func TestClassify(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct{ err, want error }{
		"not there":          {apierrors.NewNotFound(kind, "a"), ErrNotFound},
		"there already":      {apierrors.NewAlreadyExists(kind, "a"), ErrExists},
		"changed":            {apierrors.NewConflict(kind, "a", errors.New("changed")), ErrConflict},
		"forbidden":          {apierrors.NewForbidden(kind, "a", errors.New("no")), ErrRejected},
		"too large":          {apierrors.NewRequestEntityTooLargeError("a"), ErrRejected},
		"too many requests":  {apierrors.NewTooManyRequests("later", 1), ErrUnknown},
		"timed out":          {apierrors.NewTimeoutError("a", 1), ErrUnknown},
		"internal error":     {apierrors.NewInternalError(errors.New("etcd")), ErrUnknown},
		"the caller gave up": {context.DeadlineExceeded, ErrUnknown},
	} {
		if got := classify(c.err); !errors.Is(got, c.want) || !errors.Is(got, c.err) {
			t.Errorf("%s: %v, want it to be %v", name, got, c.want)
		}
	}
	if classify(nil) != nil {
		t.Error("nothing went wrong, and yet")
	}
}

func TestClusterListerCache(t *testing.T) {
	read := map[string]int{}
	l := &ClusterLister{HoldingOf: func(p *corev1.Pod) (policies.Holding, ChargeBasis) {
		read[p.Name]++
		standing := BasisPromise
		if p.Name == "unpromised" {
			standing = BasisUnmanaged
		}
		return policies.Holding{Namespace: "a", Charge: policies.Charge{Slices: int64(read[p.Name])}}, standing
	}}
	pod := func(name, version string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
	}
	l.podsOf("a", []corev1.Pod{pod("same", "1"), pod("changes", "1"), pod("unpromised", "1")})
	got := l.podsOf("a", []corev1.Pod{pod("same", "1"), pod("changes", "2"), pod("unpromised", "1")})
	l.podsOf("b", []corev1.Pod{pod("same", "1")})
	l.podsOf("a", nil)
	l.podsOf("a", []corev1.Pod{pod("same", "1")})
	want := map[string]int{"same": 3, "changes": 2, "unpromised": 2}
	if diff := cmp.Diff(want, read); diff != "" || len(got) != 3 || got[0].Holding.Charge.Slices != 1 || got[1].Holding.Charge.Slices != 2 {
		t.Errorf("%+v; reads (-want +got)\n%s", got, diff)
	}
}

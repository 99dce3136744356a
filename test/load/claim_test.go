package load

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// TestQuotaOfClaims creates pods with 100 in flight whose slices are claims: as many as the limit allows are let in, all name the
// one template that the leader writes, and Kubernetes makes a claim for each.
func TestQuotaOfClaims(t *testing.T) {
	t.Run("is filled exactly", func(t *testing.T) {
		l := newLab(t)
		l.strategy = "claim"
		l.share()
		seen, err := count(t.Context(), l.Server.Client)
		if err != nil {
			t.Fatal(err)
		}
		const creates, limit = 300, 50
		one := newTenant(l.Server.Client, 200, limit)
		l.govern([]*tenant{one}, nil)
		crowd(t.Context(), one, creates, 100)
		if _, most := seen.of(one.namespace); one.told["created"] != limit || most > limit || one.told["failed"] > 0 {
			t.Errorf("%d were created of %d, %v, at most %d at once", one.told["created"], limit, one.told, most)
		}
		names := l.templates(one)
		if len(names) != 1 || names["gpuslice-1324mi"] != limit {
			t.Errorf("pods name %v", names)
		}
		l.claimed(one, limit)
		err = wait.PollUntilContextTimeout(t.Context(), time.Second, settleWithin, true,
			func(context.Context) (bool, error) { return l.differs(one, seen) == "", nil })
		if err != nil {
			t.Error(l.differs(one, seen))
		}
	})
}

// share makes the nodes those of a driver that shares out memory.
func (l *lab) share() {
	l.t.Helper()
	source, err := scenarios.Published([]string{"dra-h100"}, []string{"nvidia-h100-shares-memory"})
	if err == nil {
		err = l.Nodes(l.t.Context(), source.Nodes...)
	}
	if err == nil {
		err = l.Devices(l.t.Context(), source)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// templates counts the tenant's pods by the templates that they name.
func (l *lab) templates(one *tenant) map[string]int {
	l.t.Helper()
	pods, err := one.client.CoreV1().Pods(one.namespace).List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	names := map[string]int{}
	for i := range pods.Items {
		given, err := promise.Decode(pods.Items[i].Annotations[api.AnnotationPromise])
		if err != nil {
			l.t.Fatal(err)
		}
		for _, c := range given.Containers {
			names[c.Template]++
		}
	}
	return names
}

// claimed returns once Kubernetes has made so many claims for the tenant's pods.
func (l *lab) claimed(one *tenant, n int) {
	l.t.Helper()
	have := 0
	err := wait.PollUntilContextTimeout(l.t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		claims, err := one.client.ResourceV1().ResourceClaims(one.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		have = 0
		for _, c := range claims.Items {
			if strings.HasPrefix(c.Name, "pod-") {
				have++
			}
		}
		return have == n, nil
	})
	if err != nil {
		l.t.Errorf("%d of %d claims: %v", have, n, err)
	}
}

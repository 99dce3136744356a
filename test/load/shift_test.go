package load

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// held is the label of namespaces in which another webhook takes its time.
const held = "example.com/holds"

// takeOver makes a replica whose clock is this far ahead the only one.
func (l *lab) takeOver(binary string, ahead time.Duration) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	if err := l.TakeOver(ctx, binary, ahead); err != nil {
		l.t.Fatal(err)
	}
}

// TestQuotaWithShiftedClock fills a quota by one replica, with pods that another webhook holds up, and asks a replica with
// another clock for one more.
func TestQuotaWithShiftedClock(t *testing.T) {
	cluster.Need(t)
	binary, err := install.ShiftedBinary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name           string
		first, further time.Duration // how far the clock is ahead
	}{
		{"a replica ahead keeps the reservations of others", 0, 90 * time.Second},
		{"others keep the reservations of a replica behind", -90 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			open := make(chan struct{})
			release := sync.OnceFunc(func() { close(open) })
			neighbor(t, l.Server, "holds", held, func(r *admissionv1.AdmissionRequest) bool {
				if strings.HasPrefix(r.Name, "first-") {
					<-open
				}
				return true
			})
			one := newTenant(l.Server.Client, 1, 2)
			l.govern([]*tenant{one}, map[string]string{held: "yes"})
			l.takeOver(binary, tt.first)
			var creating sync.WaitGroup
			defer creating.Wait()
			defer release()
			for k := range one.limit {
				creating.Go(func() { one.tell(l.create(one, fmt.Sprintf("first-%d", k))) })
			}
			l.reserved(one, one.limit)
			l.takeOver(binary, tt.further)
			if got := l.create(one, "further"); got != "exceeded" {
				t.Errorf("one more pod: %s with %d of %d slices reserved", got, one.limit, one.limit)
			}
			release()
			creating.Wait()
			if one.told["created"] != one.limit {
				t.Errorf("the first pods: %v", one.told)
			}
		})
	}
}

// create creates a pod of the tenant's.
func (l *lab) create(one *tenant, name string) string {
	_, err := one.client.CoreV1().Pods(one.namespace).Create(l.t.Context(), slice(name), metav1.CreateOptions{})
	return verdict(err)
}

// reserved returns once the tenant's ledger has so many reservations.
func (l *lab) reserved(one *tenant, n int) {
	l.t.Helper()
	store, have := ledger.ClusterStore{Client: l.Server.Client, Namespace: api.SystemNamespace}, 0
	err := wait.PollUntilContextTimeout(l.t.Context(), 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		object, err := store.Get(ctx, ledger.ObjectName(config.QuotaSpec{}.BudgetKey(one.namespace)))
		if err != nil {
			return false, nil // not written yet
		}
		_, state, err := ledger.Decode(object.Data)
		have = len(state.Reservations)
		return have == n, err
	})
	if err != nil {
		l.t.Fatalf("%d reservations: %v", have, err)
	}
}

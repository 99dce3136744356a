package main

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/guard/lease"
)

// TestLeaseHolder: the Lease is renewed while the agent enforces, and what is not enforced is on it within a second.
func TestLeaseHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var mu sync.Mutex
		enforces, report := false, lease.Report{}
		set := func(on bool, r lease.Report) { mu.Lock(); defer mu.Unlock(); enforces, report = on, r }
		h := &leaseHolder{client: client, namespace: "gpuslice-system", node: "gpu-1", log: slog.New(slog.DiscardHandler),
			enforces: func() bool { mu.Lock(); defer mu.Unlock(); return enforces },
			report:   func() lease.Report { mu.Lock(); defer mu.Unlock(); return report }}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.run(ctx) }()
		// age is how long ago the Lease was renewed.
		age := func() (_ time.Duration, l *coordinationv1.Lease) {
			t.Helper()
			synctest.Wait()
			l, err := client.CoordinationV1().Leases("gpuslice-system").Get(t.Context(), lease.Name("gpu-1"), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return 0, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			return time.Since(l.Spec.RenewTime.Time), l
		}
		time.Sleep(time.Minute)
		if _, l := age(); l != nil {
			t.Errorf("a Lease before the agent enforces: %+v", l)
		}
		set(true, lease.Report{Used: map[string]int64{"u-1": 7}})
		time.Sleep(time.Minute)
		if d, l := age(); d > leasePeriod || *l.Spec.HolderIdentity != "gpu-1" ||
			*l.Spec.LeaseDurationSeconds != 30 || lease.Read(l.Annotations).Used["u-1"] != 7 {
			t.Errorf("renewed %s ago: %+v", d, l)
		}
		set(true, lease.Report{NotEnforced: map[string]string{"u-1": "it is lost"}})
		time.Sleep(leaseCheck)
		_, l := age()
		if got := lease.Read(l.Annotations); got.NotEnforced["u-1"] != "it is lost" || len(l.Annotations) != 1 {
			t.Errorf("reported %+v in %q", got, l.Annotations)
		}
		set(false, lease.Report{})
		time.Sleep(time.Minute)
		if d, _ := age(); d < time.Minute {
			t.Errorf("renewed %s ago by an agent that does not enforce", d)
		}
		stop()
		<-done
	})
}

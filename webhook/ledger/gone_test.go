package ledger_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestGonePods(t *testing.T) {
	t.Run("the reservation of a pod that came and went is released by the next list", func(t *testing.T) {
		t.Parallel()
		now := time.Now()
		reserved := func(uid string) ledger.Reservation {
			return ledger.Reservation{PodUID: uid, Name: uid, CreatedAt: now,
				Holding: quota.Holding{Namespace: "team-a", Charge: quota.Charge{Slices: 1}}}
		}
		left := &ledger.GonePods{}
		left.Add("gone")
		s := ledger.State{Reservations: []ledger.Reservation{reserved("gone"), reserved("on-its-way")}}
		got := s.WithList(ledger.Listing{StartedAt: now, Namespaces: []ledger.Namespace{{Name: "team-a"}}, Gone: left})
		if len(got.Reservations) != 1 || got.Reservations[0].PodUID != "on-its-way" {
			t.Errorf("%+v", got.Reservations)
		}
		if got := s.WithList(ledger.Listing{StartedAt: now}); len(got.Reservations) != 2 {
			t.Errorf("nobody looks, and %+v are left", got.Reservations)
		}
	})
	t.Run("the leader releases the room of a pod that another replica admitted a moment before it reconciles", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newWatchingBench(t, 2, 0, always)
			seen := &ledger.GonePods{}
			leader := b.replica(ledger.Options{Gone: seen, Leads: func() bool { return true },
				Budgets: func() []ledger.Budget { return []ledger.Budget{b.budget} }})
			b.replicas = []*ledger.Ledger{b.replica(ledger.Options{})}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go leader.Run(ctx)
			b.want(b.admit("first"), ledger.Admitted) // so that there is a ledger
			time.Sleep(14 * time.Second)
			dry := b.request("dry")
			dry.DryRun = true
			b.want(leader.Reserve(ctx, dry), ledger.Admitted) // so that the leader has just read it
			b.want(b.admit("quick"), ledger.Admitted)
			b.cluster.DeletePod("quick")
			seen.Add("quick")
			leader.PodChanged("team-a")
			time.Sleep(2 * time.Second)
			b.want(b.replicas[0].Reserve(ctx, b.request("next")), ledger.Admitted)
		})
	})
	t.Run("pods are forgotten", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := &ledger.GonePods{}
			for i := range 100_000 {
				d.Add(fmt.Sprint(i))
			}
			if d.Has(fmt.Sprint(100_000-1<<16-1)) || !d.Has(fmt.Sprint(100_000-1<<16)) || !d.Has("99999") {
				t.Error("not the oldest are forgotten, or more than are too many")
			}
			time.Sleep(3 * ledger.ReservationTTL)
			d.Add("new")
			if d.Has("99999") || !d.Has("new") {
				t.Error("what is old is kept")
			}
		})
	})
}

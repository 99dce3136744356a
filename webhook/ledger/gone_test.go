package ledger_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestGonePods(t *testing.T) {
	t.Run("the reservation of a pod that came and went is released by the next list", func(t *testing.T) {
		t.Parallel()
		now := time.Now()
		reserved := func(uid string) ledger.Reservation {
			return ledger.Reservation{PodUID: uid, Name: uid, CreatedAt: now, Holding: policies.Holding{Namespace: "team-a", Charge: policies.Charge{Slices: 1}}}
		}
		left := &ledger.GonePods{}
		left.Add("gone")
		s := ledger.State{Reservations: []ledger.Reservation{reserved("gone"), reserved("on-its-way")}}
		got := s.Reconciled(ledger.Listing{StartedAt: now, Namespaces: []ledger.Namespace{{Name: "team-a"}}, Gone: left})
		if len(got.Reservations) != 1 || got.Reservations[0].PodUID != "on-its-way" {
			t.Errorf("%+v", got.Reservations)
		}
		if got := s.Reconciled(ledger.Listing{StartedAt: now}); len(got.Reservations) != 2 {
			t.Errorf("nobody looks, and %+v are left", got.Reservations)
		}
	})
	t.Run("pods are forgotten", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := &ledger.GonePods{}
			for i := range 100_000 {
				d.Add(fmt.Sprint(i))
			}
			if d.Has("0") || !d.Has("99999") {
				t.Error("not the oldest are forgotten")
			}
			time.Sleep(3 * ledger.ReservationTTL)
			d.Add("new")
			if d.Has("99999") || !d.Has("new") {
				t.Error("what is old is kept")
			}
		})
	})
}

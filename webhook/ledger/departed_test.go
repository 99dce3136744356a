package ledger_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestRoomOfAPodThatCameAndWentIsGivenBackByTheNextList(t *testing.T) {
	t.Parallel()
	now := time.Now()
	reserved := func(uid string) ledger.Reservation {
		return ledger.Reservation{PodUID: uid, Name: uid, At: now, Holding: policies.Holding{Namespace: "team-a", Charge: policies.Charge{Slices: 1}}}
	}
	left := &ledger.Departed{}
	left.Left("gone")
	s := ledger.State{Reservations: []ledger.Reservation{reserved("gone"), reserved("on-its-way")}}
	got := s.Reconciled(ledger.Listing{Asked: now, Namespaces: []ledger.Namespace{{Name: "team-a"}}, Left: left})
	if len(got.Reservations) != 1 || got.Reservations[0].PodUID != "on-its-way" {
		t.Errorf("%+v", got.Reservations)
	}
	if got := s.Reconciled(ledger.Listing{Asked: now}); len(got.Reservations) != 2 {
		t.Errorf("nobody looks, and %+v are left", got.Reservations)
	}
}

func TestTheDepartedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &ledger.Departed{}
		for i := range 100_000 {
			d.Left(fmt.Sprint(i))
		}
		if d.Has("0") || !d.Has("99999") {
			t.Error("not the oldest are forgotten")
		}
		time.Sleep(3 * ledger.Expiry)
		d.Left("new")
		if d.Has("99999") || !d.Has("new") {
			t.Error("what is old is kept")
		}
	})
}

package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// TestATallyIsWhatAddingUpWouldGive compares the running sums with those of a State read anew, over random reservations
// of few names.
func TestATallyIsWhatAddingUpWouldGive(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	scopes := []policies.QuotaScope{{}, {Namespace: "a"}, {Pool: "p"}, {Class: "c"}}
	for range 200 {
		tally := ledger.NewTally(ledger.State{Base: []policies.Holding{{Namespace: "a", Charge: policies.Charge{Slices: random.Int64N(9)}}}})
		for i := range 30 {
			h := policies.Holding{Namespace: string("ab"[random.IntN(2)]), Charge: policies.Charge{Slices: random.Int64N(5)}}
			if random.IntN(2) == 0 {
				h.Pools, h.Classes = []string{"p"}, map[string]policies.Charge{"c": h.Charge}
			}
			r := ledger.Reservation{PodUID: fmt.Sprint(i), Name: fmt.Sprint(random.IntN(6)), Holding: h}
			for _, scope := range scopes {
				quota := policies.Quota{Limits: []policies.QuotaLimit{{Scope: scope, Limits: policies.QuotaLimits{Slices: new(int64(random.Int64N(40)))}}}}
				if got, want := tally.Excess(quota, r), ledger.NewTally(tally.State()).Excess(quota, r); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("scope %+v of %+v: %v, added up anew %v", scope, tally.State(), got, want)
				}
			}
			tally.Reserve(r)
			if !tally.Has(r) {
				t.Fatal("what was reserved is not there")
			}
		}
	}
}

func TestReservationsOfOneNameCountByTheirMaximum(t *testing.T) {
	s := ledger.State{Base: []policies.Holding{{Namespace: "a", Charge: policies.Charge{Slices: 1}}}}
	for i, slices := range []int64{2, 5, 3} {
		s.Reservations = append(s.Reservations, ledger.Reservation{PodUID: fmt.Sprint(i), Name: "same", Holding: policies.Holding{Namespace: "a", Charge: policies.Charge{Slices: slices}}})
	}
	s.Reservations = append(s.Reservations, ledger.Reservation{PodUID: "9", Name: "same", Holding: policies.Holding{Namespace: "b", Charge: policies.Charge{Slices: 10}}})
	if got := s.Used(policies.QuotaScope{}).Slices; got != 1+5+10 {
		t.Errorf("%d slices, want 16", got)
	}
	if got := s.Used(policies.QuotaScope{Namespace: "a"}).Slices; got != 6 {
		t.Errorf("%d slices of namespace a, want 6", got)
	}
}

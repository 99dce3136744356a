package ledger

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// TestRebase has a list arrive for a ledger that was written while the pods were listed.
func TestRebase(t *testing.T) {
	in := func(slices int64) []quota.Holding {
		return []quota.Holding{{Namespace: "a", Charge: quota.Charge{Slices: slices}}}
	}
	at := func(revision uint64, base []quota.Holding, reserved ...string) State {
		s := State{Namespaces: []string{"a"}, Revisions: map[string]uint64{"a": revision}, Base: base}
		for _, uid := range reserved {
			s.Reservations = append(s.Reservations, Reservation{PodUID: uid, Name: uid, Holding: in(1)[0]})
		}
		return s
	}
	lost := at(20, in(2))
	lost.NotBefore = time.Now()
	unknown := fmt.Errorf("write ledger: %w", ErrUnknown)
	read := at(10, in(1), "released", "kept")
	for name, c := range map[string]struct {
		read   State
		uid    string // of the later version
		later  State
		failed error
		want   string // the base and reservations of what is written next, and the reservations that a denial may rest on
		err    error
	}{
		"the ledger's part is newer":     {read, "u", at(20, in(2), "kept", "new"), nil, "2 [kept new] [kept]", nil},
		"the list is newer":              {read, "u", at(12, in(2), "kept", "new"), nil, "3 [kept new] [kept]", nil},
		"after a conflict":               {read, "u", at(20, in(2), "new"), ErrConflict, "2 [new] []", nil},
		"the write may have been done":   {read, "u", at(20, in(2), "kept"), unknown, "", unknown},
		"the ledger was created again":   {read, "v", at(20, in(2), "kept"), nil, "", ErrConflict},
		"the ledger was lost":            {read, "u", lost, nil, "", ErrConflict},
		"revisions have another origin":  {at(1<<40, in(1)), "u", at(20, in(2)), nil, "", ErrConflict},
		"the list's revision is unknown": {at(0, in(1)), "u", at(0, in(2)), nil, "", ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			list := Listing{Namespaces: []Namespace{{Name: "a", Revision: 15}}, Pods: []Pod{{UID: "listed", Holding: in(3)[0]}}}
			if c.read.Revisions["a"] == 0 {
				list.Namespaces[0].Revision = 0
			}
			a := newAttempt(storedLedger{object: Object{UID: "u", Version: "1"}, state: c.read}, list)
			a.failed = c.failed
			later := storedLedger{object: Object{UID: c.uid, Version: "2"}, state: c.later}
			got, err := (&round{}).rebase(a, later)
			if !errors.Is(err, c.err) || err != nil && c.err == nil {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			text := fmt.Sprint(got.next.Held(quota.Scope{}).Slices, " ", uids(got.next), " ", uids(got.counted))
			if text != c.want || got.over.object.Version != "2" {
				t.Errorf("%s over version %s, want %s", text, got.over.object.Version, c.want)
			}
			if len(a.counted.Reservations) != len(c.read.Reservations) || a.over.object.Version != "1" {
				t.Error("the attempt before has changed")
			}
		})
	}
}

// TestBackOff has another attempt fail after each wait. After a first conflict the wait is a part of what the write took.
func TestBackOff(t *testing.T) {
	for name, c := range map[string]struct {
		failed error
		want   []int // milliseconds
	}{
		"conflicts":         {ErrConflict, []int{3, 2, 2, 2, 2, 2, 2, 2, 2, 4, 8, 16, 32, 32}},
		"no answer":         {ErrUnknown, []int{2, 4, 8, 16, 32, 64, 128, 256, 256}},
		"created meanwhile": {ErrExists, []int{2, 4, 8, 16, 32, 32}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New(Options{Random: func() float64 { return 0.5 }})
				defer l.Close()
				r := &round{line: &l.workerFor(Budget{Key: "k"}).admits}
				r.writeTook = 6 * time.Millisecond
				r.beginTurn()
				for i, want := range c.want {
					begin := time.Now()
					r.backOff(t.Context(), fmt.Errorf("write ledger: %w", c.failed))
					if took := time.Since(begin); took != time.Duration(want)*time.Millisecond {
						t.Errorf("attempt %d waits for %s, want %d ms", i, took, want)
					}
				}
			})
		})
	}
}

// TestEqualExceptRevisions: a reconcile by watches writes nothing where pods and reservations are those of before.
func TestEqualExceptRevisions(t *testing.T) {
	held := State{Base: []quota.Holding{{Namespace: "a", Charge: quota.Charge{Slices: 1}}},
		Reservations: []Reservation{{PodUID: "1"}}, Revisions: map[string]uint64{"a": 1}}
	for name, c := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"a later revision":    {func(s *State) { s.Revisions = map[string]uint64{"a": 2} }, true},
		"other pods":          {func(s *State) { s.Base = []quota.Holding{{Namespace: "a", Charge: quota.Charge{Slices: 2}}} }, false},
		"no pods":             {func(s *State) { s.Base = nil }, false},
		"another reservation": {func(s *State) { s.Reservations = []Reservation{{PodUID: "2"}} }, false},
	} {
		other := held
		if c.change(&other); held.equalExceptRevisions(other) != c.want || other.equalExceptRevisions(held) != c.want {
			t.Errorf("%s: equal is %v", name, !c.want)
		}
	}
}

// TestAfterLoss: what a replica remembers is reserved again, unless it is there or its pod can no longer be created.
func TestAfterLoss(t *testing.T) {
	now := time.Now()
	reserved := func(uid string, age time.Duration) Reservation {
		return Reservation{PodUID: uid, Name: uid, CreatedAt: now.Add(-age)}
	}
	remembered := State{Reservations: []Reservation{reserved("expired", ReservationTTL+1), reserved("there", 0),
		reserved("oldest", ReservationTTL), reserved("new", 0)}}
	bounds := func() (earliest, latest time.Time) { return now, now.Add(time.Second) }
	for name, c := range map[string]struct{ notBefore, want time.Time }{
		"a first loss": {time.Time{}, now.Add(time.Second + ReservationTTL)},
		"another one":  {now.Add(time.Second), now.Add(time.Second)},
	} {
		got := State{NotBefore: c.notBefore, Reservations: []Reservation{reserved("there", 0)}}.afterLoss(remembered, bounds)
		if fmt.Sprint(uids(got)) != "[there oldest new]" || !got.NotBefore.Equal(c.want) {
			t.Errorf("%s: %v until %s", name, uids(got), got.NotBefore)
		}
	}
}

func uids(s State) []string {
	all := []string{}
	for _, r := range s.Reservations {
		all = append(all, r.PodUID)
	}
	return all
}

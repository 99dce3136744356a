package ledger

import (
	"strconv"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// TestTooManyStale: a full ledger denies in every namespace, and old reservations in their own alone.
func TestTooManyStale(t *testing.T) {
	now := time.Now()
	reserved := func(n int, age time.Duration) State {
		var s State
		for i := range n {
			s.Reservations = append(s.Reservations, Reservation{PodUID: strconv.Itoa(i), CreatedAt: now.Add(-age), Holding: quota.Holding{Namespace: "b"}})
		}
		return s
	}
	for name, c := range map[string]struct {
		state     State
		namespace string
		want      bool
	}{
		"one before the ledger is full": {reserved(maxReservations-1, 0), "a", false},
		"a full ledger":                 {reserved(maxReservations, 0), "a", true},
		"one stale reservation less":    {reserved(2, staleAge+time.Second), "b", false},
		"stale reservations":            {reserved(3, staleAge+time.Second), "b", true},
		"those of another namespace":    {reserved(3, staleAge+time.Second), "a", false},
		"of the last seconds":           {reserved(3, staleAge), "b", false},
	} {
		l := New(Options{MaxStaleReservations: 3})
		r := &round{line: &l.workerFor(Budget{Key: "k"}).admits}
		if got := r.tooManyStale(NewTally(c.state), c.namespace, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		l.Close()
	}
}

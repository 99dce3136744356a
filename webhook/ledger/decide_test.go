package ledger

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// TestTooManyStale: a full ledger denies in every namespace, and old reservations in their own alone.
func TestTooManyStale(t *testing.T) {
	now := time.Now()
	reserved := func(n int, age time.Duration) State {
		var s State
		for i := range n {
			s.Reservations = append(s.Reservations,
				Reservation{PodUID: strconv.Itoa(i), CreatedAt: now.Add(-age), Holding: quota.Holding{Namespace: "b"}})
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

// TestNeedsReconcile has a budget at rest, and one whose round may reconcile it anyway.
func TestNeedsReconcile(t *testing.T) {
	one := []*waiter{{}}
	for name, c := range map[string]struct {
		age      time.Duration // of the last reconcile
		changed  bool          // a pod
		reserved int
		waiting  []*waiter
		lists    bool
		want     bool
	}{
		"nothing happened":                  {0, false, 0, nil, false, false},
		"for as long as may be":             {idleReconcilePeriod, false, 0, nil, false, false},
		"for longer":                        {idleReconcilePeriod + 1, false, 0, nil, false, true},
		"pods changed":                      {0, true, 0, nil, false, true},
		"something is reserved":             {0, false, 1, nil, false, true},
		"requests wait":                     {busyReconcilePeriod, true, 0, one, false, false},
		"requests always wait":              {busyReconcilePeriod + 1, true, 0, one, false, true},
		"pods are listed":                   {busyReconcilePeriod, false, 1, nil, true, false},
		"pods are always listed":            {busyReconcilePeriod + 1, false, 1, nil, true, true},
		"requests wait and nothing changed": {busyReconcilePeriod + 1, false, 0, one, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &worker{podsChanged: c.changed, reservations: c.reserved, lastReconcile: time.Now().Add(-c.age)}
				w.admits.queue, w.lists.running = c.waiting, c.lists
				if got := w.needsReconcile(); got != c.want {
					t.Errorf("%v", got)
				}
			})
		})
	}
}

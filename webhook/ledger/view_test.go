package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// newWatchingBench is a bench whose replicas have watches that are late by 20 ms, while watching returns true.
func newWatchingBench(t *testing.T, held int64, replicas int, watching func() bool) *bench {
	b := newBench(t, held, 0)
	b.late = func() func() (time.Duration, bool) {
		return func() (time.Duration, bool) { return 20 * time.Millisecond, watching() }
	}
	for range replicas {
		b.replicas = append(b.replicas, b.replica(ledger.Options{}))
	}
	return b
}

func always() bool { return true }

func (b *bench) lists() (n int64) {
	for _, r := range b.replicas {
		n += r.Counts().Lists
	}
	return n
}

func TestReserveByWatches(t *testing.T) {
	t.Run("a namespace is filled by three replicas with one list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newWatchingBench(t, 600, 3, always)
			b.want(b.admit("first"), ledger.Admitted)
			before, most := b.lists(), 0
			var users sync.WaitGroup
			for i := range 300 {
				users.Go(func() {
					time.Sleep(time.Duration(i) * 10 * time.Millisecond)
					r := b.request(fmt.Sprint(i))
					if a := b.replicas[i%3].Reserve(t.Context(), r); a.Decision != ledger.Admitted {
						t.Errorf("%+v", a)
					}
					b.create(r)
				})
			}
			for range 100 {
				time.Sleep(30 * time.Millisecond)
				state, err := b.cluster.State(teamA)
				if err != nil {
					t.Fatal(err)
				}
				most = max(most, len(state.Reservations))
			}
			users.Wait()
			if n := b.lists() - before; n > 0 || most > 50 {
				t.Errorf("%d lists; the ledger had %d reservations at once", n, most)
			}
		})
	})
	t.Run("the last slice goes to one, and a denial rests on a list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newWatchingBench(t, 2, 2, always)
			b.want(b.admit("first"), ledger.Admitted)
			time.Sleep(time.Second)
			b.want(b.admit("second"), ledger.Admitted)
			time.Sleep(time.Second)
			before := b.lists()
			b.want(b.replicas[1].Reserve(t.Context(), b.request("third")), ledger.Exceeded)
			if b.lists() == before {
				t.Error("denied without a list")
			}
			b.cluster.DeletePod("first")
			b.want(b.replicas[1].Reserve(t.Context(), b.request("third")), ledger.Admitted) // before the watch shows it
		})
	})
	t.Run("a pod that ended is found by the watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newWatchingBench(t, 2, 1, always)
			b.want(b.admit("first"), ledger.Admitted)
			time.Sleep(time.Second)
			b.want(b.admit("second"), ledger.Admitted)
			b.cluster.DeletePod("first")
			time.Sleep(time.Second)
			before := b.lists()
			b.want(b.admit("third"), ledger.Admitted)
			if n := b.lists() - before; n > 0 {
				t.Errorf("%d lists", n)
			}
		})
	})
	t.Run("a dry run writes nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newWatchingBench(t, 2, 1, always)
			b.want(b.admit("first"), ledger.Admitted)
			time.Sleep(time.Second)
			before := b.cluster.Writes(teamA)
			r := b.request("dry")
			r.DryRun = true
			b.want(b.replicas[0].Reserve(t.Context(), r), ledger.Admitted)
			if n := b.cluster.Writes(teamA) - before; n > 0 {
				t.Errorf("%d writes", n)
			}
		})
	})
	t.Run("pods of a broken watch are listed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			watching := true
			b := newWatchingBench(t, 2, 1, func() bool { return watching })
			b.want(b.admit("first"), ledger.Admitted)
			time.Sleep(time.Second)
			b.want(b.admit("second"), ledger.Admitted)
			b.cluster.DeletePod("first")
			watching = false
			b.want(b.admit("third"), ledger.Admitted)
		})
	})
}

func TestReconcileByWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchingBench(t, 10, 0, always)
		var mu sync.Mutex
		var reports []ledger.Report
		b.replicas = append(b.replicas, b.replica(ledger.Options{
			Leads: always, Budgets: func() []ledger.Budget { return []ledger.Budget{b.budget} },
			Report: func(r ledger.Report) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, r)
			},
		}))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.replicas[0].Run(ctx) })
		b.want(b.admit("lives"), ledger.Admitted)
		time.Sleep(10 * time.Second)
		b.settled()
		reported := func() []ledger.Report {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(reports)
		}
		lists, writes, before := b.lists(), b.cluster.Writes(teamA), len(reported())
		time.Sleep(4 * time.Minute)
		if b.lists() > lists || b.cluster.Writes(teamA) > writes || len(reported()) == before {
			t.Errorf("at rest: %d lists, %d writes, %d reports", b.lists()-lists, b.cluster.Writes(teamA)-writes, len(reported())-before)
		}
		all := reported()
		if held := all[len(all)-1].State.Held(quota.Scope{}); held.Slices != 1 {
			t.Errorf("reported %+v", held)
		}
		time.Sleep(2 * time.Minute)
		if b.lists() == lists {
			t.Error("a watch that is stuck would never be noticed")
		}
		lists = b.lists()
		b.want(b.replicas[0].Reserve(t.Context(), b.request("never created")), ledger.Admitted)
		time.Sleep(ledger.ReservationTTL + 10*time.Second)
		if b.lists() == lists {
			t.Error("a reservation expired without a list")
		}
		b.settled()
		cancel()
		running.Wait()
	})
}

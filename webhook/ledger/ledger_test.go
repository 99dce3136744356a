package ledger_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/ledger/ledgertest"
)

func TestReserve(t *testing.T) {
	abuse.Report(t, abuse.Attempt{Threat: "A29", Attack: "pods that fail later", Outcome: abuse.Contained, Words: "each reserves one place of the tenant's own quota for a minute"})
	t.Run("a burst is admitted exactly to the limit", func(t *testing.T) {
		for _, c := range []struct{ limit, want int }{{50, 50}, {2000, 1000}} {
			t.Run(fmt.Sprintf("1000 pods, room for %d", c.limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, int64(c.limit), 3)
					answers := make(chan ledger.Answer, 1000)
					places := make(chan struct{}, 300)
					var running sync.WaitGroup
					begin := time.Now()
					for i := range 1000 {
						places <- struct{}{}
						running.Go(func() {
							defer func() { <-places }()
							r := b.request(fmt.Sprint(i))
							a := b.replicas[i%3].Reserve(t.Context(), r)
							if a.Decision == ledger.Admitted {
								time.Sleep(5 * time.Millisecond)
								b.create(r)
							}
							answers <- a
						})
					}
					running.Wait()
					close(answers)
					count := map[ledger.Decision]int{}
					for a := range answers {
						count[a.Decision]++
					}
					if count[ledger.Admitted] != c.want || count[ledger.Busy] != 0 {
						t.Errorf("admitted, exceeded, busy: %v, want %d admitted and none busy", count, c.want)
					}
					if _, live := b.cluster.Live("team-a"); live != c.want {
						t.Errorf("%d pods live", live)
					}
					t.Logf("in %v; writes %d, first replica %+v", time.Since(begin), b.cluster.Writes(teamA), b.replicas[0].Counts())
					b.settle()
					b.settled()
				})
			})
		}
	})
	t.Run("a denial reads like the one of a ResourceQuota", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1, 1)
			b.want(b.admit("1"), ledger.Admitted)
			a := b.admit("2")
			b.want(a, ledger.Exceeded)
			if got := quota.Denial(a.Excess).String(); got != "exceeded quota: team-a, requested: slices=1, used: slices=1, limited: slices=1" {
				t.Errorf("%s", got)
			}
		})
	})
	t.Run("capacity is free as soon as a pod ends", func(t *testing.T) {
		for name, free := range map[string]func(*ledgertest.Cluster){
			"deleted":   func(c *ledgertest.Cluster) { c.DeletePod("1") },
			"succeeded": func(c *ledgertest.Cluster) { c.EndPod("1") },
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, 1, 1)
					b.want(b.admit("1"), ledger.Admitted)
					b.want(b.admit("2"), ledger.Exceeded) // its list showed the first pod
					free(b.cluster)
					b.want(b.admit("3"), ledger.Admitted)
				})
			})
		}
	})
	t.Run("a StatefulSet pod is not denied for its predecessor", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1, 1)
			for i := range 5 { // none is ever listed before its successor asks
				r := b.request(fmt.Sprint(i))
				r.Name = "db-0"
				b.want(b.replicas[0].Reserve(t.Context(), r), ledger.Admitted)
				b.create(r)
				b.cluster.DeletePod(r.PodUID)
			}
		})
	})
	t.Run("creates that fail in a loop take one place", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 3, 1)
			for i := range 500 {
				r := b.request(fmt.Sprint(i))
				r.Name = "same"
				b.want(b.replicas[0].Reserve(t.Context(), r), ledger.Admitted)
			}
			b.want(b.admit("a"), ledger.Admitted)
			b.want(b.admit("b"), ledger.Admitted)
			b.want(b.admit("c"), ledger.Exceeded)
			b.settle()
			b.settled()
		})
	})
	t.Run("a reservation without a pod is released", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1, 2)
			b.want(b.replicas[0].Reserve(t.Context(), b.request("denied-later")), ledger.Admitted)
			b.want(b.replicas[1].Reserve(t.Context(), b.request("2")), ledger.Exceeded)
			time.Sleep(ledger.ReservationTTL + time.Second)
			b.want(b.replicas[1].Reserve(t.Context(), b.request("3")), ledger.Admitted)
		})
	})
	t.Run("a dry run answers and writes nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1, 1)
			dry := b.request("dry")
			dry.DryRun = true
			for range 3 {
				b.want(b.replicas[0].Reserve(t.Context(), dry), ledger.Admitted)
			}
			if n := b.cluster.Writes(teamA); n != 0 {
				t.Errorf("%d writes for dry runs on no ledger", n)
			}
			b.want(b.admit("1"), ledger.Admitted)
			before := b.cluster.Writes(teamA)
			b.want(b.replicas[0].Reserve(t.Context(), dry), ledger.Exceeded)
			if n := b.cluster.Writes(teamA); n != before {
				t.Errorf("%d writes for a dry run", n-before)
			}
		})
	})
	t.Run("the same review twice reserves once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1, 2)
			for _, l := range []*ledger.Ledger{b.replicas[0], b.replicas[1], b.replicas[0]} {
				b.want(l.Reserve(t.Context(), b.request("1")), ledger.Admitted)
			}
			if n := b.cluster.Writes(teamA); n != 1 {
				t.Errorf("%d writes", n)
			}
		})
	})
	t.Run("a request that is gone gets no reservation", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 10, 1)
			b.faults = func(c ledgertest.Call) ledgertest.Fault { return ledgertest.Fault{Before: 3 * time.Second} }
			r := b.request("impatient")
			r.Deadline = time.Now().Add(time.Second)
			begin := time.Now()
			a := b.replicas[0].Reserve(t.Context(), r)
			b.want(a, ledger.Busy)
			if took := time.Since(begin); took > time.Second || a.RetryAfter <= 0 {
				t.Errorf("answered after %v, retry after %v", took, a.RetryAfter)
			}
			time.Sleep(time.Minute)
			if state, _ := b.cluster.State(teamA); len(state.Reservations) > 0 {
				t.Errorf("room was reserved for nobody: %+v", state.Reservations)
			}
		})
	})
	t.Run("a write without an answer is read again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1, 1)
			puts := 0
			b.faults = func(c ledgertest.Call) (f ledgertest.Fault) {
				if c == ledgertest.Put {
					puts++
					f.Mute = puts == 1
				}
				return f
			}
			b.want(b.admit("1"), ledger.Admitted)
			if state, _ := b.cluster.State(teamA); puts != 1 || len(state.Reservations) != 1 {
				t.Errorf("%d writes, %d reservations", puts, len(state.Reservations))
			}
		})
	})
	t.Run("a rejected write is answered at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1, 1)
			b.faults = func(c ledgertest.Call) ledgertest.Fault { return ledgertest.Fault{Reject: c == ledgertest.Put} }
			begin := time.Now()
			a := b.admit("1")
			b.want(a, ledger.Busy)
			if !strings.Contains(a.Reason, "rejected") || time.Since(begin) > time.Second {
				t.Errorf("after %v: %+v", time.Since(begin), a)
			}
		})
	})
	t.Run("a flood of failing creates slows down its namespace alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 5000, 1)
			b.cluster.MakeNamespace("team-b")
			b.budget = ledger.Budget{Key: "shared/ml", Namespaces: []string{"team-a", "team-b"}}
			for i := range 256 {
				b.want(b.replicas[0].Reserve(t.Context(), b.request(fmt.Sprint(i))), ledger.Admitted)
			}
			time.Sleep(21 * time.Second)
			b.want(b.replicas[0].Reserve(t.Context(), b.request("flood")), ledger.Busy)
			other := b.request("other")
			other.Holding.Namespace = "team-b"
			b.want(b.replicas[0].Reserve(t.Context(), other), ledger.Admitted)
			time.Sleep(ledger.ReservationTTL)
			b.want(b.replicas[0].Reserve(t.Context(), b.request("later")), ledger.Admitted)
		})
	})
}

package ledger_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/ledgertest"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestReconcile(t *testing.T) {
	abuse.Report(t, abuse.Attempt{Threat: "A20", Attack: "delete a namespace and create it again", Outcome: abuse.Contained,
		Words: "the ledger stores the UID of the namespace"})
	t.Run("a lost ledger is rebuilt, and no pod gets reserved capacity", lostLedger)
	t.Run("a ledger that another replica rebuilt gets its reservations back", spoiltElsewhere)
	t.Run("a new ledger counts the living pods", newLedger)
	t.Run("a namespace that is created again starts empty", namespaceCreatedAgain)
	t.Run("a stale namespace UID releases nothing", staleNamespaceUID)
	t.Run("lowering a limit evicts no pod and admits none", loweredLimit)
	t.Run("namespaces share a budget, and a new one is counted first", sharedBudget)
	t.Run("parts of a budget have limits of their own", partsOfBudget)
}

func lostLedger(t *testing.T) {
	for name, lose := range map[string]func(*ledgertest.Cluster){
		"deleted": func(c *ledgertest.Cluster) { c.DeleteLedger(teamA) },
		"spoilt":  func(c *ledgertest.Cluster) { c.Corrupt(teamA) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 3, 2)
				b.want(b.admit("lives"), ledger.Admitted)
				flying := b.request("in flight")
				b.want(b.replicas[1].Reserve(t.Context(), flying), ledger.Admitted)
				lose(b.cluster)
				a := b.admit("too early")
				b.want(a, ledger.Busy)
				if a.RetryAfter < 50*time.Second || a.RetryAfter > ledger.ReservationTTL {
					t.Errorf("retry after %v", a.RetryAfter)
				}
				b.want(b.replicas[1].Reserve(t.Context(), flying), ledger.Admitted) // it remembers its own
				b.create(flying)
				time.Sleep(ledger.ReservationTTL + time.Second)
				b.want(b.admit("third"), ledger.Admitted)
				b.want(b.admit("fourth"), ledger.Exceeded)
				b.settle()
				b.settled()
			})
		})
	}
}

// spoiltElsewhere: a replica finds the ledger as another wrote it after the loss, without the reservations that it remembers itself.
func spoiltElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, 2)
		b.want(b.admit("lives"), ledger.Admitted)
		flying, second := b.request("in flight"), b.request("second")
		for _, r := range []ledger.Request{flying, second} {
			b.want(b.replicas[1].Reserve(t.Context(), r), ledger.Admitted)
		}
		for range 2 { // the second loss is of what was written after the first
			b.cluster.Corrupt(teamA)
			b.want(b.admit("too early"), ledger.Busy)
			time.Sleep(10 * time.Second)
			b.want(b.replicas[1].Reserve(t.Context(), flying), ledger.Admitted)
		}
		b.want(b.replicas[1].Reserve(t.Context(), second), ledger.Admitted)
		b.want(b.replicas[1].Reserve(t.Context(), b.request("new")), ledger.Busy)
		b.create(flying)
		b.create(second)
		time.Sleep(ledger.ReservationTTL + time.Second)
		b.want(b.admit("fourth"), ledger.Exceeded)
		b.settle()
		b.settled()
	})
}

func newLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, 1)
		b.create(b.request("earlier"))
		b.create(b.request("away"))
		b.want(b.admit("1"), ledger.Admitted)
		b.want(b.admit("2"), ledger.Exceeded)
	})
}

func namespaceCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, 1)
		first := b.cluster.MakeNamespace("team-a")
		listed, flying := b.request("listed"), b.request("flying")
		listed.NamespaceUID, flying.NamespaceUID = first, first
		b.want(b.replicas[0].Reserve(t.Context(), listed), ledger.Admitted)
		b.create(listed)
		b.want(b.replicas[0].Reserve(t.Context(), flying), ledger.Admitted)
		time.Sleep(30 * time.Second)
		second := b.cluster.MakeNamespace("team-a")
		for i := range 2 {
			r := b.request(fmt.Sprint(i))
			r.NamespaceUID = second
			b.want(b.replicas[0].Reserve(t.Context(), r), ledger.Admitted)
		}
		b.want(b.admit("3"), ledger.Exceeded)
	})
}

func staleNamespaceUID(t *testing.T) {
	// The replica has not seen yet that the namespace was created again.
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 1)
		stale := b.cluster.MakeNamespace("team-a")
		time.Sleep(time.Second)
		b.cluster.MakeNamespace("team-a")
		r := b.request("1")
		r.NamespaceUID = stale
		b.want(b.replicas[0].Reserve(t.Context(), r), ledger.Admitted)
		b.want(b.admit("2"), ledger.Exceeded)
	})
}

func loweredLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 4, 1)
		for i := range 4 {
			b.want(b.admit(fmt.Sprint(i)), ledger.Admitted)
		}
		b.quota = slicesQuota("team-a", 2)
		b.want(b.admit("4"), ledger.Exceeded)
		for i := range 3 {
			b.cluster.DeletePod(fmt.Sprint(i))
		}
		b.want(b.admit("5"), ledger.Admitted)
		b.want(b.admit("6"), ledger.Exceeded)
	})
}

func sharedBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, 1)
		b.cluster.MakeNamespace("team-b")
		in := func(namespace, uid string) ledger.Request {
			r := b.request(uid)
			r.Holding.Namespace = namespace
			return r
		}
		b.budget = ledger.Budget{Key: "shared/ml", Namespaces: []string{"team-a"}}
		b.want(b.replicas[0].Reserve(t.Context(), in("team-a", "1")), ledger.Admitted)
		b.create(in("team-b", "2")) // before team-b joins
		b.create(in("team-b", "3"))
		b.budget.Namespaces = []string{"team-a", "team-b"}
		denied := b.replicas[0].Reserve(t.Context(), in("team-a", "4"))
		b.want(denied, ledger.Exceeded)
		if len(denied.Pods) > 0 || len(denied.Reserved) != 1 || denied.Reserved[0].PodUID != "1" {
			t.Errorf("team-a is shown pods %v, reservations %v", denied.Pods, denied.Reserved)
		}
		b.cluster.DeletePod("2")
		b.want(b.replicas[0].Reserve(t.Context(), in("team-b", "5")), ledger.Admitted)
	})
}

func partsOfBudget(t *testing.T) {
	one := int64(1)
	only := func(name string, scope quota.Scope) quota.Quota {
		return quota.Quota{Limits: []quota.Limit{{Name: name, Scope: scope, Limits: quota.Limits{Slices: &one}}}}
	}
	inside := quota.Holding{Namespace: "team-a", Pools: []string{"a100"}, Charge: quota.Charge{Slices: 1},
		Classes: map[string]quota.Charge{"small": {Slices: 1}}}
	outside := quota.Holding{Namespace: "team-b", Pools: []string{"t4"}, Charge: quota.Charge{Slices: 1},
		Classes: map[string]quota.Charge{"large": {Slices: 1}}}
	for name, limited := range map[string]quota.Quota{
		"pool":      only("team-a (pool a100)", quota.Scope{Pool: "a100"}),
		"class":     only("team-a (class small)", quota.Scope{Class: "small"}),
		"namespace": only("team-a/gpuslice-policy", quota.Scope{Namespace: "team-a"}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 0, 1)
				b.cluster.MakeNamespace("team-b")
				b.budget, b.quota = ledger.Budget{Key: "shared/ml", Namespaces: []string{"team-a", "team-b"}}, limited
				ask := func(uid string, h quota.Holding) ledger.Decision {
					r := b.request(uid)
					r.Holding = h
					a := b.replicas[0].Reserve(t.Context(), r)
					if a.Decision == ledger.Admitted {
						b.create(r)
					}
					return a.Decision
				}
				got := []ledger.Decision{ask("1", inside), ask("2", outside), ask("3", inside), ask("4", outside)}
				for i, want := range []ledger.Decision{ledger.Admitted, ledger.Admitted, ledger.Exceeded, ledger.Admitted} {
					if got[i] != want {
						t.Fatalf("%v", got)
					}
				}
				b.cluster.DeletePod("1")
				if v := ask("5", inside); v != ledger.Admitted {
					t.Errorf("with the part empty again: %s", v)
				}
			})
		})
	}
}

func TestRun(t *testing.T) {
	t.Run("reconciles follow the pods without any request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 9, 0)
			reports := make(chan ledger.Report, 100)
			l := b.replica(ledger.Options{Report: func(r ledger.Report) { reports <- r }})
			b.replicas = append(b.replicas, l)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go l.Run(ctx)
			b.want(b.admit("1"), ledger.Admitted)
			b.want(b.admit("2"), ledger.Admitted)
			time.Sleep(6 * time.Second)
			b.settled()
			b.cluster.EndPod("1")
			away := ledger.Pod{UID: "away", Name: "away", Holding: b.request("away").Holding, Unmanaged: true}
			if err := b.cluster.CreatePod(away); err != nil {
				t.Fatal(err)
			}
			l.PodChanged("team-a")
			time.Sleep(6 * time.Second)
			b.settled()
			var last ledger.Report
			for len(reports) > 0 {
				last = <-reports
			}
			if len(last.Unmanaged) != 1 || last.Unmanaged[0].UID != "away" || last.Budget.Key != teamA {
				t.Errorf("report %+v", last)
			}
			lists := l.Counts().Lists
			time.Sleep(50 * time.Second) // nothing is in flight and nothing changed
			if n := l.Counts().Lists - lists; n > 1 {
				t.Errorf("%d lists while nothing happened", n)
			}
		})
	})
	t.Run("the leader reconciles budgets without requests", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 9, 1)
			leader := b.replica(ledger.Options{Leads: func() bool { return true },
				Budgets: func() []ledger.Budget { return []ledger.Budget{b.budget} }})
			b.want(b.admit("1"), ledger.Admitted)
			b.replicas[0].Close()
			b.replicas[0] = leader
			b.settle()
			b.settled()
		})
	})
	t.Run("the leader drops budgets that no longer exist", func(t *testing.T) {
		// Each costs a list a minute as long as it has a worker.
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 9, 0)
			var all atomic.Pointer[[]ledger.Budget]
			all.Store(&[]ledger.Budget{b.budget})
			leader := b.replica(ledger.Options{Leads: func() bool { return true }, Budgets: func() []ledger.Budget { return *all.Load() }})
			b.replicas = append(b.replicas, leader)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go leader.Run(ctx)
			lists := func(within time.Duration) int64 {
				before := leader.Counts().Lists
				time.Sleep(within)
				return leader.Counts().Lists - before
			}
			b.want(b.admit("1"), ledger.Admitted)
			if n := lists(15 * time.Minute); n < 10 {
				t.Errorf("%d lists of a budget that nobody asks about", n)
			}
			all.Store(new([]ledger.Budget))
			lists(15 * time.Minute)
			if n := lists(time.Hour); n != 0 {
				t.Errorf("%d lists of a budget that is gone", n)
			}
		})
	})
	t.Run("a slow budget delays no other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 9, 1)
			slow := true
			b.faults = func(ledgertest.Call) (f ledgertest.Fault) {
				if slow {
					f.Before = 3 * time.Second
				}
				return f
			}
			go b.replicas[0].Reserve(t.Context(), b.request("slow"))
			synctest.Wait()
			slow = false
			b.cluster.MakeNamespace("team-b")
			r := b.request("other")
			r.Holding.Namespace = "team-b"
			r.Budget = ledger.Budget{Key: "namespace/team-b", Namespaces: []string{"team-b"}}
			begin := time.Now()
			b.want(b.replicas[0].Reserve(t.Context(), r), ledger.Admitted)
			if took := time.Since(begin); took > 100*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	})
}

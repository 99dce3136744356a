package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/ledgertest"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func TestReserve(t *testing.T) {
	abuse.Report(t, abuse.Attempt{Threat: "A29", Attack: "pods that fail later", Outcome: abuse.Contained,
		Words: "each reserves one place of the tenant's own quota for a minute"})
	t.Run("a burst is admitted exactly to the limit", burstToTheLimit)
	t.Run("a denial reads like the one of a ResourceQuota", readsLikeResourceQuota)
	t.Run("a denial has the namespace's pods, and what a second create of one name reserves", denialHasPods)
	t.Run("capacity is free as soon as a pod ends", freeOncePodEnds)
	t.Run("a StatefulSet pod is not denied for its predecessor", statefulSetPod)
	t.Run("creates that fail in a loop take one place", failingCreates)
	t.Run("a reservation without a pod is released", reservationWithoutPod)
	t.Run("a dry run answers and writes nothing", dryRun)
	t.Run("a dry run of pods that are not counted lists none", uncountedDryRun)
	t.Run("the same review twice reserves once", sameReviewTwice)
	t.Run("a request that is gone gets no reservation", impatientRequest)
	t.Run("a write without an answer is read again", writeWithoutAnswer)
	t.Run("a rejected write is answered at once", rejectedWrite)
	t.Run("a flood of failing creates slows down its namespace alone", floodOfCreates)
}

func burstToTheLimit(t *testing.T) {
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
}

func readsLikeResourceQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 1)
		b.want(b.admit("1"), ledger.Admitted)
		a := b.admit("2")
		b.want(a, ledger.Exceeded)
		if got := quota.Denial(a.Excess).String(); got != "exceeded quota: team-a, requested: slices=1, used: slices=1, limited: slices=1" {
			t.Errorf("%s", got)
		}
	})
}

func denialHasPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, 1)
		b.want(b.admit("1"), ledger.Admitted)
		b.want(b.replicas[0].Reserve(t.Context(), b.sized("probe", 9)), ledger.Exceeded) // the ledger rests on a list with the pod
		again := b.request("2")                                                          // admitted: the API server denies it after gpuslice
		again.Name = b.request("1").Name
		b.want(b.replicas[0].Reserve(t.Context(), again), ledger.Admitted)
		a := b.admit("3")
		b.want(a, ledger.Exceeded)
		if len(a.Pods) != 1 || a.Pods[0].UID != "1" || len(a.Reserved) != 1 || a.Reserved[0].Name != again.Name || a.Excess[0].Left != "0" {
			t.Errorf("pods %v, reservations %v, %s left", a.Pods, a.Reserved, a.Excess[0].Left)
		}
	})
}

func freeOncePodEnds(t *testing.T) {
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
}

func statefulSetPod(t *testing.T) {
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
}

func failingCreates(t *testing.T) {
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
}

func reservationWithoutPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 2)
		b.want(b.replicas[0].Reserve(t.Context(), b.request("denied-later")), ledger.Admitted)
		b.want(b.replicas[1].Reserve(t.Context(), b.request("2")), ledger.Exceeded)
		time.Sleep(ledger.ReservationTTL + time.Second)
		b.want(b.replicas[1].Reserve(t.Context(), b.request("3")), ledger.Admitted)
	})
}

// uncountedDryRun: where pods cannot be watched, a dry run that fits lists none.
func uncountedDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, 2)
		b.want(b.admit("1"), ledger.Admitted)
		dry := b.request("dry")
		dry.DryRun = true
		for range 3 {
			b.want(b.replicas[1].Reserve(t.Context(), dry), ledger.Admitted)
		}
		if n := b.replicas[1].Counts().Lists; n != 0 {
			t.Errorf("%d lists for dry runs", n)
		}
		b.want(b.replicas[1].Reserve(t.Context(), b.request("2")), ledger.Admitted)
		if n := b.replicas[1].Counts().Lists; n != 1 {
			t.Errorf("%d lists for the first pod", n)
		}
		b.want(b.replicas[1].Reserve(t.Context(), dry), ledger.Exceeded)
	})
}

func dryRun(t *testing.T) {
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
}

func sameReviewTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 2)
		for _, l := range []*ledger.Ledger{b.replicas[0], b.replicas[1], b.replicas[0]} {
			b.want(l.Reserve(t.Context(), b.request("1")), ledger.Admitted)
		}
		if n := b.cluster.Writes(teamA); n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}

func impatientRequest(t *testing.T) {
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
}

func writeWithoutAnswer(t *testing.T) {
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
}

func rejectedWrite(t *testing.T) {
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
}

func floodOfCreates(t *testing.T) {
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
}

func TestReserveWithoutLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 9, 1)
		b.quota = quota.Quota{}
		b.want(b.admit("1"), ledger.Admitted)
		if c := b.replicas[0].Counts(); c != (ledger.Counts{}) {
			t.Errorf("%+v", c)
		}
	})
}

func TestReserveWithoutUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 9, 1)
		without := b.request("without")
		without.PodUID = ""
		b.want(b.replicas[0].Reserve(t.Context(), without), ledger.Busy)
		b.want(b.admit("1"), ledger.Admitted) // not, had the ledger that reservation: nobody could read it
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 9, 1)
		b.faults = func(ledgertest.Call) ledgertest.Fault { return ledgertest.Fault{Before: time.Second} }
		answers := make(chan ledger.Answer)
		go func() { answers <- b.replicas[0].Reserve(t.Context(), b.request("waiting")) }()
		synctest.Wait()
		b.replicas[0].Close()
		b.want(<-answers, ledger.Busy)
		b.want(b.replicas[0].Reserve(t.Context(), b.request("late")), ledger.Busy)
		if n := b.replicas[0].Counts().Requests; n != 1 {
			t.Errorf("%d requests wait, one of them since the ledger was closed", n)
		}
	})
}

func TestLedgerUnderChaos(t *testing.T) {
	total := map[string]int{}
	for seed := range uint64(chaosSeeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chaos{random: rand.New(rand.NewPCG(seed, 4)), count: map[string]int{}, slow: seed%2 == 1}
				c.bench = newBench(t, chaosLimit, 0)
				c.faults = c.fault
				if seed%4 < 2 {
					c.late = c.lateWatches
				}
				c.cluster.Watch(teamA, c.note)
				c.run()
				if c.most > chaosLimit {
					t.Errorf("%d slices lived at once, the limit is %d", c.most, chaosLimit)
				}
				c.settled()
				for what, n := range c.count {
					total[what] += n
				}
				total["most alive"] = max(total["most alive"], int(c.most))
			})
		})
	}
	t.Logf("%d seeds of %d requests, limit %d: %v", chaosSeeds, chaosRequests, chaosLimit, total)
	if total["most alive"] < chaosLimit-1 || total["exceeded"] == 0 || total["busy"] == 0 {
		t.Errorf("the load never met the limit or never met trouble: %v", total)
	}
}

func TestBurstOnAPIServer(t *testing.T) {
	for _, c := range []struct{ limit, want int }{{50, 50}, {1000, 600}} {
		t.Run(fmt.Sprintf("600 pods, 100 at a time, three replicas, room for %d", c.limit), func(t *testing.T) {
			s := cluster.ForTest(t, cluster.Options{})
			if err := errors.Join(s.Namespace(t.Context(), system, nil),
				s.Namespace(t.Context(), "team-a", map[string]string{"quota": "held"})); err != nil {
				t.Fatal(err)
			}
			ledgers := serve(t, s, s.Client, int64(c.limit))
			var admitted, strange atomic.Int64
			var running sync.WaitGroup
			places := make(chan struct{}, 100)
			begin := time.Now()
			for i := range 600 {
				places <- struct{}{}
				running.Go(func() {
					defer func() { <-places }()
					_, err := s.Client.CoreV1().Pods("team-a").Create(t.Context(), gpuPod(fmt.Sprintf("pod-%d", i)), metav1.CreateOptions{})
					if err == nil {
						admitted.Add(1)
					} else if !containsQuota(err) {
						strange.Add(1)
						t.Log(err)
					}
				})
			}
			running.Wait()
			took := time.Since(begin)
			var all ledger.Counts
			for _, l := range ledgers {
				n := l.Counts()
				all.Requests, all.Writes, all.Conflicts, all.Lists, all.Gets = all.Requests+n.Requests, all.Writes+n.Writes,
					all.Conflicts+n.Conflicts, all.Lists+n.Lists, all.Gets+n.Gets
			}
			t.Logf("%d admitted in %v; %+v", admitted.Load(), took, all)
			if int(admitted.Load()) != c.want || strange.Load() > 0 {
				t.Errorf("%d admitted, %d answers that are neither yes nor for want of quota; want %d and none",
					admitted.Load(), strange.Load(), c.want)
			}
		})
	}
}

// TestPriorityLevelOnAPIServer sends more creates at once than the API server serves, each of which occupies its seat until the ledger
// is written. With the priority level of the manifests the writes have seats of their own; without it they wait for the
// creates that wait for them, which shows that the level is what helps.
func TestPriorityLevelOnAPIServer(t *testing.T) {
	for name, level := range map[string]bool{"with a level of our own": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			s := cluster.ForTest(t, cluster.Options{Flags: []string{"--max-requests-inflight=100", "--max-mutating-requests-inflight=100"}})
			inversionSite(t, s, level)
			serve(t, s, as(t, s, system, "gpuslice-webhook"), 10_000)
			denied, times := create600(t, as(t, s, "team-a", "default"))
			t.Logf("%d of 600 denied; p50 %v, p99 %v", len(denied), times[len(times)/2], times[len(times)*99/100])
			switch {
			case level && len(denied) > 0:
				t.Errorf("%d denied, such as: %v", len(denied), denied[0])
			case !level && len(denied) == 0:
				t.Error("nothing is denied without the level either: the test proves nothing")
			}
		})
	}
}

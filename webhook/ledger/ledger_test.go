package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/ledger/ledgertest"
)

// bench is one budget, namespace/team-a, of so many slices, and replicas that decide about it.
type bench struct {
	t        *testing.T
	cluster  *ledgertest.Cluster
	quota    policies.Quota
	budget   ledger.Budget
	replicas []*ledger.Ledger
	faults   func(ledgertest.Call) ledgertest.Fault
}

const teamA = "namespace/team-a"

func newBench(t *testing.T, slices int64, replicas int) *bench {
	b := &bench{t: t, cluster: ledgertest.New("team-a"), quota: slicesQuota("team-a", slices), budget: ledger.Budget{Key: teamA, Namespaces: []string{"team-a"}}}
	t.Cleanup(b.cluster.Wait)
	for range replicas {
		b.replicas = append(b.replicas, b.replica(ledger.Options{}))
	}
	return b
}

func (b *bench) replica(o ledger.Options) *ledger.Ledger {
	client := &ledgertest.Client{Cluster: b.cluster, Faults: func(c ledgertest.Call) ledgertest.Fault {
		if b.faults != nil {
			return b.faults(c)
		}
		return ledgertest.Fault{Before: time.Millisecond, After: time.Millisecond}
	}}
	o.Store, o.Lister = client, client
	l := ledger.New(o)
	b.t.Cleanup(l.Close)
	return l
}

func slicesQuota(name string, n int64) policies.Quota {
	return policies.Quota{Limits: []policies.QuotaLimit{{Name: name, Limits: policies.QuotaLimits{Slices: &n}}}}
}

func (b *bench) request(uid string) ledger.Request {
	return ledger.Request{Budget: b.budget, Quota: b.quota, PodUID: uid, Name: "pod-" + uid,
		Holding: policies.Holding{Namespace: "team-a", Charge: policies.Charge{Memory: 1024, Slices: 1}}}
}

func (b *bench) create(r ledger.Request) {
	b.t.Helper()
	if err := b.cluster.CreatePod(ledger.Pod{UID: r.PodUID, Name: r.Name, Holding: r.Holding}); err != nil {
		b.t.Fatal(err)
	}
}

// admit asks the first replica, and creates the pod where the answer is yes.
func (b *bench) admit(uid string) ledger.Answer {
	b.t.Helper()
	r := b.request(uid)
	a := b.replicas[0].Admit(b.t.Context(), r)
	if a.Verdict == ledger.Admitted {
		b.create(r)
	}
	return a
}

func (b *bench) want(a ledger.Answer, v ledger.Verdict) {
	b.t.Helper()
	if a.Verdict != v {
		b.t.Fatalf("answer %+v, want %s", a, v)
	}
}

// settle lets a replica's passes run until nothing is in flight any more.
func (b *bench) settle() {
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.replicas[0].Run(ctx) })
	time.Sleep(ledger.Expiry + 10*time.Second)
	cancel()
	running.Wait()
	synctest.Wait()
}

// settled says that the ledger is what lives, and nothing else.
func (b *bench) settled() {
	b.t.Helper()
	state, err := b.cluster.State(teamA)
	if err != nil {
		b.t.Fatal(err)
	}
	held, pods := b.cluster.Live("team-a")
	if used := state.Used(policies.QuotaScope{}); used != held || len(state.Reservations) > 0 {
		b.t.Errorf("%d pods hold %+v, the ledger says %+v with %d reservations", pods, held, used, len(state.Reservations))
	}
}

func TestABurstIsLetInExactlyToTheLimit(t *testing.T) {
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
						a := b.replicas[i%3].Admit(t.Context(), r)
						if a.Verdict == ledger.Admitted {
							time.Sleep(5 * time.Millisecond)
							b.create(r)
						}
						answers <- a
					})
				}
				running.Wait()
				close(answers)
				count := map[ledger.Verdict]int{}
				for a := range answers {
					count[a.Verdict]++
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

func TestARefusalReadsLikeKubernetesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 1)
		b.want(b.admit("1"), ledger.Admitted)
		a := b.admit("2")
		b.want(a, ledger.Exceeded)
		if got := policies.QuotaViolation(a.Excess).String(); got != "exceeded quota: team-a, requested: slices=1, used: slices=1, limited: slices=1" {
			t.Errorf("%s", got)
		}
	})
}

func TestRoomIsFreeAsSoonAsAPodEnds(t *testing.T) {
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

func TestAStatefulSetPodIsNotRefusedForItsPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 1)
		for i := range 5 { // none is ever listed before its successor asks
			r := b.request(fmt.Sprint(i))
			r.Name = "db-0"
			b.want(b.replicas[0].Admit(t.Context(), r), ledger.Admitted)
			b.create(r)
			b.cluster.DeletePod(r.PodUID)
		}
	})
}

func TestCreatesThatFailInALoopTakeOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 3, 1)
		for i := range 500 {
			r := b.request(fmt.Sprint(i))
			r.Name = "same"
			b.want(b.replicas[0].Admit(t.Context(), r), ledger.Admitted)
		}
		b.want(b.admit("a"), ledger.Admitted)
		b.want(b.admit("b"), ledger.Admitted)
		b.want(b.admit("c"), ledger.Exceeded)
		b.settle()
		b.settled()
	})
}

func TestAReservationThatCameToNothingIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 2)
		b.want(b.replicas[0].Admit(t.Context(), b.request("refused-later")), ledger.Admitted)
		b.want(b.replicas[1].Admit(t.Context(), b.request("2")), ledger.Exceeded)
		time.Sleep(ledger.Expiry + time.Second)
		b.want(b.replicas[1].Admit(t.Context(), b.request("3")), ledger.Admitted)
	})
}

func TestADryRunAnswersAndWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 1)
		dry := b.request("dry")
		dry.DryRun = true
		for range 3 {
			b.want(b.replicas[0].Admit(t.Context(), dry), ledger.Admitted)
		}
		if n := b.cluster.Writes(teamA); n != 0 {
			t.Errorf("%d writes for dry runs on no ledger", n)
		}
		b.want(b.admit("1"), ledger.Admitted)
		before := b.cluster.Writes(teamA)
		b.want(b.replicas[0].Admit(t.Context(), dry), ledger.Exceeded)
		if n := b.cluster.Writes(teamA); n != before {
			t.Errorf("%d writes for a dry run", n-before)
		}
	})
}

func TestTheSameReviewTwiceReservesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 2)
		for _, l := range []*ledger.Ledger{b.replicas[0], b.replicas[1], b.replicas[0]} {
			b.want(l.Admit(t.Context(), b.request("1")), ledger.Admitted)
		}
		if n := b.cluster.Writes(teamA); n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestWhoDoesNotWaitGetsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10, 1)
		b.faults = func(c ledgertest.Call) ledgertest.Fault { return ledgertest.Fault{Before: 3 * time.Second} }
		r := b.request("impatient")
		r.Deadline = time.Now().Add(time.Second)
		begin := time.Now()
		a := b.replicas[0].Admit(t.Context(), r)
		b.want(a, ledger.Busy)
		if took := time.Since(begin); took > time.Second || a.RetryAfter <= 0 {
			t.Errorf("answered after %v, retry after %v", took, a.RetryAfter)
		}
		b.faults = nil
		time.Sleep(time.Minute)
		if state, _ := b.cluster.State(teamA); len(state.Reservations) > 0 {
			t.Errorf("room was reserved for nobody: %+v", state.Reservations)
		}
	})
}

func TestALostAnswerIsReadAgain(t *testing.T) {
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

func TestAWriteThatIsRefusedIsSaidAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 1)
		b.faults = func(c ledgertest.Call) ledgertest.Fault { return ledgertest.Fault{Refuse: c == ledgertest.Put} }
		begin := time.Now()
		a := b.admit("1")
		b.want(a, ledger.Busy)
		if !strings.Contains(a.Why, "refused") || time.Since(begin) > time.Second {
			t.Errorf("after %v: %+v", time.Since(begin), a)
		}
	})
}

func TestAFloodOfFailingCreatesIsSlowedDownAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 5000, 1)
		b.cluster.MakeNamespace("team-b")
		b.budget = ledger.Budget{Key: "shared/ml", Namespaces: []string{"team-a", "team-b"}}
		for i := range 256 {
			b.want(b.replicas[0].Admit(t.Context(), b.request(fmt.Sprint(i))), ledger.Admitted)
		}
		time.Sleep(6 * time.Second)
		b.want(b.replicas[0].Admit(t.Context(), b.request("flood")), ledger.Busy)
		other := b.request("other")
		other.Holding.Namespace = "team-b"
		b.want(b.replicas[0].Admit(t.Context(), other), ledger.Admitted)
		time.Sleep(ledger.Expiry)
		b.want(b.replicas[0].Admit(t.Context(), b.request("later")), ledger.Admitted)
	})
}

package ledger_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/ledgertest"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// bench is one budget, namespace/team-a, of so many slices, and replicas that decide about it.
type bench struct {
	t        *testing.T
	cluster  *ledgertest.Cluster
	quota    quota.Quota
	budget   ledger.Budget
	replicas []*ledger.Ledger
	faults   func(ledgertest.Call) ledgertest.Fault
	late     func() func() (time.Duration, bool) // of each new replica's watches; nil: there are none
}

const teamA = "namespace/team-a"

func newBench(t *testing.T, slices int64, replicas int) *bench {
	b := &bench{t: t, cluster: ledgertest.New("team-a"), quota: slicesQuota("team-a", slices),
		budget: ledger.Budget{Key: teamA, Namespaces: []string{"team-a"}}}
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
	if b.late != nil {
		client.Late = b.late()
	}
	o.Store, o.Lister, o.Watcher, o.Shown = client, client, client, client.Shown
	l := ledger.New(o)
	b.t.Cleanup(l.Close)
	return l
}

func slicesQuota(name string, n int64) quota.Quota {
	return quota.Quota{Limits: []quota.Limit{{Name: name, Limits: quota.Limits{Slices: &n}}}}
}

func (b *bench) request(uid string) ledger.Request {
	return ledger.Request{Budget: b.budget, Quota: b.quota, PodUID: uid, Name: "pod-" + uid,
		Holding: quota.Holding{Namespace: "team-a", Charge: quota.Charge{Memory: 1024, Slices: 1}}}
}

func (b *bench) create(r ledger.Request) {
	b.t.Helper()
	if err := b.cluster.CreatePod(ledger.Pod{UID: r.PodUID, Name: r.Name, Holding: r.Holding}); err != nil {
		b.t.Fatal(err)
	}
}

// admit makes a reservation at the first replica, and creates the pod if it is admitted.
func (b *bench) admit(uid string) ledger.Answer {
	b.t.Helper()
	r := b.request(uid)
	a := b.replicas[0].Reserve(b.t.Context(), r)
	if a.Decision == ledger.Admitted {
		b.create(r)
	}
	return a
}

func (b *bench) want(a ledger.Answer, v ledger.Decision) {
	b.t.Helper()
	if a.Decision != v {
		b.t.Fatalf("answer %+v, want %s", a, v)
	}
}

// settle lets a replica's passes run until nothing is in flight any more.
func (b *bench) settle() {
	ctx, cancel := context.WithCancel(b.t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.replicas[0].Run(ctx) })
	time.Sleep(ledger.ReservationTTL + 10*time.Second)
	cancel()
	running.Wait()
	synctest.Wait()
}

// settled fails the test unless the ledger equals the living pods.
func (b *bench) settled() {
	b.t.Helper()
	state, err := b.cluster.State(teamA)
	if err != nil {
		b.t.Fatal(err)
	}
	held, pods := b.cluster.Live("team-a")
	if used := state.Used(quota.Scope{}); used != held || len(state.Reservations) > 0 {
		b.t.Errorf("%d pods hold %+v, the ledger has %+v with %d reservations", pods, held, used, len(state.Reservations))
	}
}

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func (b *bench) counts() (sum ledger.Counts) {
	for _, r := range b.replicas {
		c := r.Counts()
		sum.Gets, sum.Writes, sum.Conflicts = sum.Gets+c.Gets, sum.Writes+c.Writes, sum.Conflicts+c.Conflicts
	}
	return sum
}

// TestShownLedger is about replicas that write one ledger in turn, as often as a deployment creates pods.
func TestShownLedger(t *testing.T) {
	turns := func(t *testing.T, watching func() bool) (counts ledger.Counts) {
		synctest.Test(t, func(t *testing.T) {
			b := newWatchingBench(t, 100, 3, watching)
			for i := range b.replicas { // the first request of each reads
				b.want(b.replicas[i].Reserve(t.Context(), b.request(fmt.Sprint("first-", i))), ledger.Admitted)
				time.Sleep(100 * time.Millisecond)
			}
			before := b.counts()
			for i := range 30 {
				b.want(b.replicas[i%3].Reserve(t.Context(), b.request(fmt.Sprint(i))), ledger.Admitted)
				time.Sleep(100 * time.Millisecond)
			}
			counts = b.counts()
			counts.Gets, counts.Conflicts = counts.Gets-before.Gets, counts.Conflicts-before.Conflicts
			if state, err := b.cluster.State(teamA); err != nil || len(state.Reservations) != 33 {
				t.Errorf("%d reservations, %v", len(state.Reservations), err)
			}
		})
		return counts
	}
	t.Run("what the watch shows is not read", func(t *testing.T) {
		if c := turns(t, always); c.Gets > 0 || c.Conflicts > 0 {
			t.Errorf("%d reads, %d conflicts", c.Gets, c.Conflicts)
		}
	})
	t.Run("without a watch it is read", func(t *testing.T) {
		if c := turns(t, func() bool { return false }); c.Gets == 0 {
			t.Error("no reads")
		}
	})
	for name, lose := range map[string]func(*bench){
		"a deleted ledger that is still shown is missed": func(b *bench) { b.cluster.DeleteLedger(teamA) },
		"a corrupted ledger that is shown is missed":     func(b *bench) { b.cluster.Corrupt(teamA) },
		"a ledger that was created again and is shown is missed": func(b *bench) {
			b.cluster.DeleteLedger(teamA)
			b.want(b.replica(ledger.Options{}).Reserve(b.t.Context(), b.request("by one that knows nothing")), ledger.Admitted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newWatchingBench(t, 100, 2, always)
				b.want(b.admit("first"), ledger.Admitted)
				b.want(b.replicas[1].Reserve(t.Context(), b.request("never created")), ledger.Admitted)
				lose(b)
				time.Sleep(100 * time.Millisecond)
				b.want(b.replicas[1].Reserve(t.Context(), b.request("next")), ledger.Busy)
				b.want(b.replicas[0].Reserve(t.Context(), b.request("next")), ledger.Busy)
			})
		})
	}
}

// TestShownLedgerOfDryRun is about a replica that answers dry runs, which cause no conflicts.
func TestShownLedgerOfDryRun(t *testing.T) {
	t.Run("it does not rest on a watch that is stuck", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 2, 1)
			begin := time.Now()
			b.late = func() func() (time.Duration, bool) {
				return func() (time.Duration, bool) { return max(20*time.Millisecond, time.Since(begin)-time.Second), true }
			}
			b.replicas = append(b.replicas, b.replica(ledger.Options{}))
			dry := b.request("dry")
			dry.DryRun = true
			b.want(b.admit("first"), ledger.Admitted)
			time.Sleep(500 * time.Millisecond)
			b.want(b.replicas[1].Reserve(t.Context(), dry), ledger.Admitted)
			time.Sleep(time.Second)
			b.want(b.admit("second"), ledger.Admitted)
			time.Sleep(time.Minute)
			b.want(b.replicas[1].Reserve(t.Context(), dry), ledger.Exceeded)
		})
	})
	t.Run("a ledger that is deleted is missed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newWatchingBench(t, 2, 2, always)
			dry := b.request("dry")
			dry.DryRun = true
			b.want(b.admit("first"), ledger.Admitted)
			for range 8 {
				time.Sleep(10 * time.Second)
				b.want(b.replicas[1].Reserve(t.Context(), dry), ledger.Admitted)
			}
			b.want(b.replicas[0].Reserve(t.Context(), b.request("being created")), ledger.Admitted)
			b.cluster.DeleteLedger(teamA) // before the watch shows the reservation
			b.replicas[0].Close()
			b.want(b.replicas[1].Reserve(t.Context(), b.request("next")), ledger.Busy)
		})
	})
}

func TestStoreWatchOnAPIServer(t *testing.T) {
	s := cluster.ForTest(t, cluster.Options{})
	if err := s.Namespace(t.Context(), system, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store, watch := ledger.ClusterStore{Client: s.Client, Namespace: system}, ledger.NewStoreWatch(s.Client, system)
	stopped := make(chan struct{})
	go func() { watch.Run(ctx); close(stopped) }()
	await := func(what string, is func(ledger.Object, bool) bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !is(watch.Shown("gpuslice-ledger-a")); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				got, ok := watch.Shown("gpuslice-ledger-a")
				t.Fatalf("%s is not shown, but %v %+v", what, ok, got)
			}
		}
	}
	same := func(want ledger.Object) func(ledger.Object, bool) bool {
		return func(got ledger.Object, ok bool) bool {
			return ok && got.Version == want.Version && got.UID == want.UID && string(got.Data) == string(want.Data)
		}
	}
	if _, ok := watch.Shown("gpuslice-ledger-a"); ok {
		t.Error("a ledger is shown that does not exist")
	}
	made, err := store.Create(ctx, ledger.Object{Name: "gpuslice-ledger-a", Budget: teamA, Data: []byte("{}")})
	await("a created ledger", same(made))
	made.Data = []byte(`{"v":1}`)
	changed, updateErr := store.Update(ctx, made)
	if err := errors.Join(err, updateErr); err != nil {
		t.Fatal(err)
	}
	await("an updated ledger", same(changed))
	cancel()
	<-stopped
}

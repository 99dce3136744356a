package ledger_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/test/ledgertest"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// calls makes each call to the cluster take so long.
func (b *bench) calls(took time.Duration) {
	b.faults = func(ledgertest.Call) ledgertest.Fault { return ledgertest.Fault{Before: took / 2, After: took / 2} }
}

// TestCrowd is about many requests at several replicas, whose writes meet.
func TestCrowd(t *testing.T) {
	t.Run("a request that arrives while a write is tried again goes with it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1000, 2)
			b.want(b.admit("first"), ledger.Admitted)
			b.want(b.replicas[1].Reserve(t.Context(), b.request("second")), ledger.Admitted) // the first replica's copy is old now
			b.calls(40 * time.Millisecond)
			before := b.replicas[0].Counts()
			var both sync.WaitGroup
			for i, uid := range []string{"retried", "joins"} {
				both.Go(func() {
					time.Sleep(time.Duration(i) * 10 * time.Millisecond)
					if a := b.replicas[0].Reserve(t.Context(), b.request(uid)); a.Decision != ledger.Admitted {
						t.Errorf("%s: %+v", uid, a)
					}
				})
			}
			both.Wait()
			after := b.replicas[0].Counts()
			if writes, conflicts := after.Writes-before.Writes, after.Conflicts-before.Conflicts; writes != 2 || conflicts != 1 {
				t.Errorf("%d writes with %d conflicts, want one that fails and one for both", writes, conflicts)
			}
			if n := after.Requests - before.Requests; n != 2 {
				t.Errorf("%d requests were counted", n)
			}
		})
	})
	t.Run("a replica that met another's write reads before it writes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1000, 2)
			b.want(b.admit("first"), ledger.Admitted)
			for i := range 10 {
				r := b.request(fmt.Sprint(i))
				b.want(b.replicas[i%2].Reserve(t.Context(), r), ledger.Admitted)
			}
			if n := b.replicas[0].Counts().Conflicts + b.replicas[1].Counts().Conflicts; n != 2 {
				t.Errorf("%d conflicts of ten writes in turns, want one of each replica", n)
			}
			time.Sleep(10 * time.Second)
			before := b.replicas[0].Counts().Gets
			b.want(b.replicas[0].Reserve(t.Context(), b.request("later")), ledger.Admitted)
			b.want(b.replicas[0].Reserve(t.Context(), b.request("at once")), ledger.Admitted)
			if n := b.replicas[0].Counts().Gets - before; n != 1 {
				t.Errorf("%d reads for two writes that nobody meets", n)
			}
		})
	})
	for name, c := range map[string]struct {
		meets       bool // another replica's write
		write, wait time.Duration
	}{
		"a replica that wrote for several waits for two writes of others": {true, 40 * time.Millisecond, 80 * time.Millisecond},
		"it waits a little where writes are fast":                         {true, 2 * time.Millisecond, 10 * time.Millisecond},
		"it does not wait long where writes are slow":                     {true, 700 * time.Millisecond, 250 * time.Millisecond},
		"it waits a little where nobody else writes":                      {false, 40 * time.Millisecond, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1000, 2)
				b.want(b.admit("first"), ledger.Admitted)
				if c.meets {
					b.want(b.replicas[1].Reserve(t.Context(), b.request("other")), ledger.Admitted)
					b.want(b.replicas[0].Reserve(t.Context(), b.request("conflict")), ledger.Admitted)
				}
				b.calls(c.write)
				var all sync.WaitGroup
				reserve := func(uid string) { all.Go(func() { b.replicas[0].Reserve(t.Context(), b.request(uid)) }) }
				reserve("alone")
				synctest.Wait() // it is being written, so that the next two are a batch
				reserve("one")
				reserve("two")
				all.Wait()
				begin := time.Now()
				b.want(b.replicas[0].Reserve(t.Context(), b.request("late")), ledger.Admitted)
				want := c.wait + c.write
				if c.meets { // it reads what the others wrote
					want += c.write
				}
				if took := time.Since(begin); took != want {
					t.Errorf("the next write is done after %s, want %s", took, want)
				}
			})
		})
	}
}

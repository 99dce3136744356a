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

// unreviewed creates four pods that no replica is asked about: an outage where the namespace fails open, or a bypass.
func (b *bench) unreviewed() {
	b.t.Helper()
	for i := range 4 {
		b.create(b.request(fmt.Sprint("unreviewed-", i)))
	}
}

// denies has a replica asked about many pods at once, each of which is to be denied.
func (b *bench) denies(replicas ...*ledger.Ledger) {
	b.t.Helper()
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			if a := replicas[i%len(replicas)].Reserve(b.t.Context(), b.request(fmt.Sprint("more-", i))); a.Decision != ledger.Exceeded {
				b.t.Errorf("answer %+v beside four pods, four are allowed", a)
			}
		})
	}
	all.Wait()
}

// TestUnreviewedPods creates pods without a review, as many as the quota allows: the first that is reviewed after that is denied.
func TestUnreviewedPods(t *testing.T) {
	for name, c := range map[string]struct {
		watching, watched bool          // before, and when the replicas are asked
		passed            time.Duration // since the replicas counted the pods
		then              func(*bench) []*ledger.Ledger
	}{
		"replicas that begin count them":                 {true, false, 0, (*bench).threeOthers},
		"replicas whose first watch is there count them": {true, true, time.Second, (*bench).threeOthers},
		"a replica whose watch is broken counts them":    {true, false, 0, (*bench).sameReplicas},
		"a replica that never watches counts them":       {false, false, time.Minute, (*bench).sameReplicas},
		"a replica that watches all the time does, too":  {true, true, time.Second, (*bench).sameReplicas},
		"a list that was not written is made again": {true, false, 0, func(b *bench) []*ledger.Ledger {
			var lost sync.Once
			b.faults = func(call ledgertest.Call) (f ledgertest.Fault) {
				if call == ledgertest.Put {
					lost.Do(func() { f.Drop = true })
				}
				return f
			}
			return b.successors(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watching := true
				b := newBench(t, 4, 0)
				if c.watching {
					b = newWatchingBench(t, 4, 0, func() bool { return watching })
				}
				b.replicas = b.successors(3)
				b.want(b.admit("before"), ledger.Admitted)
				b.cluster.DeletePod("before")
				time.Sleep(ledger.ReservationTTL + time.Second)
				for _, r := range b.replicas { // the ledger rests on a list without pods
					b.want(r.Reserve(t.Context(), b.sized("probe", 5)), ledger.Exceeded)
				}
				b.unreviewed()
				time.Sleep(c.passed)
				watching = c.watched
				b.denies(c.then(b)...)
			})
		})
	}
}

func (b *bench) sameReplicas() []*ledger.Ledger { return b.replicas }

func (b *bench) threeOthers() []*ledger.Ledger { return b.successors(3) }

// successors are new replicas.
func (b *bench) successors(n int) (all []*ledger.Ledger) {
	for range n {
		all = append(all, b.replica(ledger.Options{}))
	}
	return all
}

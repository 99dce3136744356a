package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/test/ledgertest"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// uneven makes each call take about so long, and lists half a second.
func (b *bench) uneven(call time.Duration, seed uint64) {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	half := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration((0.5 + random.Float64()) * float64(call) / 2)
	}
	b.faults = func(c ledgertest.Call) ledgertest.Fault {
		if c == ledgertest.List {
			return ledgertest.Fault{After: 500 * time.Millisecond}
		}
		return ledgertest.Fault{Before: half(), After: half()}
	}
}

// TestLines is about requests that need a list beside requests that do not.
func TestLines(t *testing.T) {
	for _, load := range []struct {
		replicas int
		call     time.Duration
	}{{1, 20 * time.Millisecond}, {1, 160 * time.Millisecond}, {3, 20 * time.Millisecond}} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("clients that create one pod after the other delay nobody who needs a list (%d replicas, calls of %s, seed %d)",
				load.replicas, load.call, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newWatchingBench(t, 1000, load.replicas, always)
					b.want(b.admit("first"), ledger.Admitted)
					b.want(b.replicas[0].Reserve(t.Context(), b.sized("lost", 700)), ledger.Admitted) // and never created
					time.Sleep(ledger.ReservationTTL + time.Second)
					b.uneven(load.call, seed)
					ctx, cancel := context.WithCancel(t.Context())
					var clients sync.WaitGroup
					for c := range 2 * load.replicas {
						clients.Go(func() {
							for i := 0; ctx.Err() == nil; i++ {
								r := b.request(fmt.Sprintf("%d-%d", c, i))
								if a := b.replicas[c%load.replicas].Reserve(t.Context(), r); a.Decision != ledger.Admitted {
									t.Errorf("%s: %+v", r.Name, a)
									return
								}
								b.create(r)
								b.cluster.DeletePod(r.PodUID)
							}
						})
					}
					time.Sleep(500 * time.Millisecond)
					begin := time.Now()
					b.want(b.replicas[0].Reserve(t.Context(), b.sized("large", 600)), ledger.Admitted)
					if took := time.Since(begin); took > 4*time.Second {
						t.Errorf("took %s", took)
					}
					cancel()
					clients.Wait()
				})
			})
		}
	}
	for name, pods := range map[string]int{"the first list": 0, "a later list": 1} {
		t.Run(name+" may take five seconds", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 10, 1)
				for i := range pods {
					b.want(b.admit(fmt.Sprint(i)), ledger.Admitted)
				}
				b.faults = func(c ledgertest.Call) ledgertest.Fault {
					if c == ledgertest.List {
						return ledgertest.Fault{After: 5 * time.Second}
					}
					return ledgertest.Fault{After: time.Millisecond}
				}
				b.want(b.replicas[0].Reserve(t.Context(), b.sized("large", 11)), ledger.Exceeded)
			})
		})
	}
	t.Run("one remembers what the other admitted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 3, 1)
			for i := range 3 {
				b.want(b.admit(fmt.Sprint(i)), ledger.Admitted)
			}
			time.Sleep(ledger.ReservationTTL + time.Second)
			b.want(b.replicas[0].Reserve(t.Context(), b.sized("probe", 9)), ledger.Exceeded) // the ledger rests on a list of the three
			b.cluster.DeletePod("1")
			again := b.request("again")
			b.want(b.replicas[0].Reserve(t.Context(), again), ledger.Admitted) // by a list
			b.cluster.DeleteLedger(teamA)
			b.want(b.replicas[0].Reserve(t.Context(), again), ledger.Admitted) // it is the same review
		})
	})
}

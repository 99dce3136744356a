package ledger_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/ledger/ledgertest"
)

// slowLists makes the lists of one replica take a second, so that others write the ledger meanwhile.
func (b *bench) slowLists() {
	b.replicas = append(b.replicas, b.replica(ledger.Options{}))
	b.faults = func(call ledgertest.Call) ledgertest.Fault {
		if call == ledgertest.List {
			return ledgertest.Fault{After: time.Second}
		}
		return ledgertest.Fault{Before: time.Millisecond, After: time.Millisecond}
	}
}

// sized is a request for so many slices.
func (b *bench) sized(uid string, slices int64) ledger.Request {
	r := b.request(uid)
	r.Holding.Charge.Slices = slices
	return r
}

func TestListDuringWrites(t *testing.T) {
	t.Run("one list is enough although others write all the time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1000, 1)
			b.want(b.admit("first"), ledger.Admitted)
			b.slowLists()
			var others sync.WaitGroup
			stop := make(chan struct{})
			others.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
						b.admit(fmt.Sprint(i))
					}
				}
			})
			large := b.sized("large", 1000) // does not fit by what the ledger says, so that the pods are listed
			b.want(b.replicas[1].Reserve(t.Context(), large), ledger.Exceeded)
			b.cluster.DeletePod("first")
			fits := b.sized("fits", 600)
			b.want(b.replicas[1].Reserve(t.Context(), fits), ledger.Admitted)
			close(stop)
			others.Wait()
			if c := b.replicas[1].Counts(); c.Lists > 2 {
				t.Errorf("%d lists for two requests: %+v", c.Lists, c)
			}
		})
	})
	t.Run("a denial does not rest on what was reserved after the list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 4, 1)
			b.want(b.admit("lives"), ledger.Admitted)
			b.want(b.admit("ended"), ledger.Admitted)
			b.want(b.replicas[0].Reserve(t.Context(), b.sized("probe", 9)), ledger.Exceeded) // the ledger rests on a list with both
			b.slowLists()
			b.cluster.DeletePod("ended")
			answer := make(chan ledger.Answer, 1)
			go func() { answer <- b.replicas[1].Reserve(t.Context(), b.sized("large", 3)) }()
			time.Sleep(500 * time.Millisecond) // the list shows "lives", and its answer is on its way
			b.cluster.DeletePod("lives")
			b.want(b.admit("small"), ledger.Admitted)
			b.want(<-answer, ledger.Admitted) // 1 + 3 at every instant
		})
	})
}

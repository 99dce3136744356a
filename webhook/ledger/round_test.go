package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/test/ledgertest"
	"github.com/gpuslice/gpuslice/webhook/ledger"
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
	t.Run("one list is enough although others write all the time", oneListIsEnough)
	t.Run("a request that fits does not wait for the list", fittingRequestWaitsForNoList)
	t.Run("lists release what expired although a replica admits all the time", listsReleaseExpired)
	t.Run("a ledger that is lost before it is listed is noticed", lostBeforeListed)
	for name, dryRun := range map[string]bool{"": false, ", also if it cannot be read again": true} {
		t.Run("a denial does not rest on a ledger from before the list"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 10, 2)
				held := func(replica int, uid string, slices int64) {
					r := b.sized(uid, slices)
					b.want(b.replicas[replica].Reserve(t.Context(), r), ledger.Admitted)
					b.create(r)
				}
				held(0, "first", 4)
				b.want(b.replicas[0].Reserve(t.Context(), b.sized("probe", 10)), ledger.Exceeded) // the ledger rests on a list with it
				held(1, "ended", 3)
				b.cluster.DeletePod("first")
				time.Sleep(5 * time.Second)
				var once sync.Once
				var rejected atomic.Bool
				b.faults = func(call ledgertest.Call) (f ledgertest.Fault) {
					if call == ledgertest.List {
						once.Do(func() { f.Before = time.Second })
					}
					f.Reject = call == ledgertest.Get && rejected.CompareAndSwap(true, false)
					return f
				}
				large := b.sized("large", 6)
				large.DryRun = dryRun // then nothing is written, and the ledger is read again instead
				answer := make(chan ledger.Answer, 1)
				go func() { answer <- b.replicas[0].Reserve(t.Context(), large) }()
				time.Sleep(100 * time.Millisecond) // its list is on the way
				b.want(b.replicas[0].Reserve(t.Context(), b.sized("small", 1)), ledger.Admitted)
				b.want(b.replicas[1].Reserve(t.Context(), b.sized("probe", 10)), ledger.Exceeded) // by a list that shows "ended"
				b.cluster.DeletePod("ended")
				held(1, "next", 3)
				rejected.Store(dryRun)
				if a := <-answer; a.Decision == ledger.Exceeded || !dryRun && a.Decision != ledger.Admitted {
					t.Errorf("%+v: 3 + 1 + 6 at most", a)
				}
			})
		})
	}
	t.Run("a ledger of another cluster is counted again", ledgerOfAnotherCluster)
	t.Run("a denial does not rest on what was reserved after the list", denialAfterList)
}

func oneListIsEnough(t *testing.T) {
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
}

func fittingRequestWaitsForNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10, 0)
		b.slowLists()
		b.want(b.admit("first"), ledger.Admitted)
		answer := make(chan ledger.Answer, 1)
		go func() { answer <- b.replicas[0].Reserve(t.Context(), b.sized("large", 10)) }()
		time.Sleep(100 * time.Millisecond) // it is being listed
		for _, uid := range []string{"small", "another"} {
			begin := time.Now()
			b.want(b.admit(uid), ledger.Admitted)
			if took := time.Since(begin); took > 50*time.Millisecond {
				t.Errorf("%s waited for %s", uid, took)
			}
		}
		begin := time.Now()
		b.want(b.replicas[0].Reserve(t.Context(), b.sized("too large", 8)), ledger.Exceeded) // it needs a list of its own
		if took := time.Since(begin); took < time.Second {
			t.Errorf("denied after %s, by a list that had begun before", took)
		}
		b.want(<-answer, ledger.Exceeded)
	})
}

func listsReleaseExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 100_000, 0)
		b.late = func() func() (time.Duration, bool) {
			return func() (time.Duration, bool) { return 0, true }
		}
		b.slowLists()
		b.want(b.replicas[0].Reserve(t.Context(), b.request("lost")), ledger.Admitted) // its pod is never created
		time.Sleep(ledger.ReservationTTL + time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var running sync.WaitGroup
		running.Go(func() { b.replicas[0].Run(ctx) })
		for i := 0; ctx.Err() == nil; i++ {
			b.want(b.admit(fmt.Sprint(i)), ledger.Admitted)
			time.Sleep(50 * time.Millisecond)
		}
		running.Wait()
		state, err := b.cluster.State(teamA)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range state.Reservations {
			if r.PodUID == "lost" {
				t.Errorf("it is reserved still, after %d lists", b.replicas[0].Counts().Lists)
			}
		}
	})
}

func lostBeforeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10, 1)
		b.want(b.admit("first"), ledger.Admitted)
		b.want(b.replicas[0].Reserve(t.Context(), b.sized("being created", 5)), ledger.Admitted)
		b.cluster.DeleteLedger(teamA)
		b.want(b.replicas[0].Reserve(t.Context(), b.sized("large", 6)), ledger.Busy)
	})
}

func ledgerOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10, 1)
		b.faults = func(call ledgertest.Call) (f ledgertest.Fault) {
			if call == ledgertest.List {
				f.Before = time.Second
			}
			return f
		}
		data, err := ledger.Encode(teamA, ledger.State{Namespaces: []string{"team-a"}, Revisions: map[string]uint64{"team-a": 1 << 40}})
		if err != nil {
			t.Fatal(err)
		}
		backup := &ledgertest.Client{Cluster: b.cluster}
		if _, err := backup.Create(t.Context(), ledger.Object{Name: ledger.ObjectName(teamA), Budget: teamA, Data: data}); err != nil {
			t.Fatal(err)
		}
		answer := make(chan ledger.Answer, 1)
		go func() { answer <- b.replicas[0].Reserve(t.Context(), b.sized("large", 11)) }()
		time.Sleep(100 * time.Millisecond) // its list is on the way
		six := b.sized("six", 6)
		b.want(b.replicas[0].Reserve(t.Context(), six), ledger.Admitted)
		b.create(six)
		b.want(<-answer, ledger.Exceeded)
		b.want(b.replicas[0].Reserve(t.Context(), b.sized("nine", 9)), ledger.Exceeded)
	})
}

func denialAfterList(t *testing.T) {
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
}

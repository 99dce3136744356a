package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/ledgertest"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

const (
	chaosSeeds    = 100
	chaosRequests = 300
	chaosLimit    = 12
	// requestBound is when the API server gives a request up.
	requestBound = 34 * time.Second
)

// chaos is one run: three replicas, each with an API server whose clock is its own, that die and come back, an API server that is slow,
// loses answers and lets writes land late, pods that other webhooks deny, whose names collide, that end and are deleted.
type chaos struct {
	*bench
	mu     sync.Mutex
	random *rand.Rand
	most   int64
	slow   bool // lists take seconds: those of a namespace with thousands of pods
	count  map[string]int
	calm   atomic.Bool
	taken  []taken
}

// taken is what lived and was reserved from an instant on.
type taken struct {
	from   time.Time
	slices int64
}

// note adds to the history: all that lives, and of what is reserved besides the largest of each name.
func (c *chaos) note(s ledger.State, living map[string]ledger.Pod) {
	var sum int64
	for _, p := range living {
		sum += p.Holding.Charge.Slices
	}
	reserved := map[string]int64{}
	for _, r := range s.Reservations {
		if _, lives := living[r.PodUID]; !lives {
			reserved[r.Name] = max(reserved[r.Name], r.Holding.Charge.Slices)
		}
	}
	for _, n := range reserved {
		sum += n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = append(c.taken, taken{time.Now(), sum})
}

// mostTaken is the most that was taken at any instant since the given time.
func (c *chaos) mostTaken(since time.Time) (most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, now := range c.taken {
		if i+1 == len(c.taken) || !c.taken[i+1].from.Before(since) {
			most = max(most, now.slices)
		}
	}
	return most
}

func (c *chaos) chance(p float64) bool { return c.float() < p }

func (c *chaos) float() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.Float64()
}

func (c *chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.float() * float64(d)) }

func (c *chaos) tally(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[what]++
}

// fault makes one call in ten go wrong.
func (c *chaos) fault(call ledgertest.Call) ledgertest.Fault {
	if call == ledgertest.List && c.slow {
		return ledgertest.Fault{Before: c.upTo(time.Second), After: c.upTo(3 * time.Second)}
	}
	if c.calm.Load() || c.chance(0.9) {
		return ledgertest.Fault{Before: c.upTo(20 * time.Millisecond), After: c.upTo(20 * time.Millisecond)}
	}
	return ledgertest.Fault{
		Before: c.upTo(6 * time.Second), After: c.upTo(6 * time.Second),
		Drop: c.chance(0.2), Mute: c.chance(0.2), Reject: c.chance(0.05),
	}
}

// lateWatches makes a replica's watches: most are late by milliseconds, some by seconds, some go back, and some are broken.
func (c *chaos) lateWatches() func() (time.Duration, bool) {
	usual := c.upTo(30 * time.Millisecond)
	if c.chance(0.3) {
		usual = c.upTo(30 * time.Second)
	}
	return func() (time.Duration, bool) {
		if !c.calm.Load() && c.chance(0.1) {
			return c.upTo(30 * time.Second), c.chance(0.7)
		}
		return usual, true
	}
}

// replicaWithSkew is one whose clock is up to ten seconds off.
func (c *chaos) replicaWithSkew(ctx context.Context, running *sync.WaitGroup) *ledger.Ledger {
	skew := c.upTo(20*time.Second) - 10*time.Second
	var l *ledger.Ledger
	l = c.replica(ledger.Options{
		Bounds: func() (earliest, latest time.Time) { now := time.Now().Add(skew); return now, now }, Random: c.float, MaxStaleReservations: 1000,
		Budgets: func() []ledger.Budget { return []ledger.Budget{c.budget} }, Leads: func() bool { return c.leads(l) },
	})
	running.Go(func() { l.Run(ctx) })
	return l
}

// leads reports whether l is the first replica at the time.
func (c *chaos) leads(l *ledger.Ledger) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replicas[0] == l
}

// user creates one pod, and lets it live for a while if it is admitted.
func (c *chaos) user(i int) {
	begin := time.Now()
	r := c.request(fmt.Sprint(i))
	r.Holding.Charge = quota.Charge{Memory: 1024}
	for range 1 + int(c.upTo(3)) {
		r.Holding.Charge = r.Holding.Charge.Plus(quota.Charge{Slices: 1, Devices: 1_000_000})
	}
	if most := (quota.Charge{Devices: chaosLimit * 1_000_000}); c.chance(0.5) { // the same limit in GPU equivalents
		r.Quota = quota.Quota{Limits: []quota.Limit{{Name: "team-a", Limits: quota.Limits{Devices: &most.Devices}}}}
	}
	if c.chance(0.2) {
		r.Name = fmt.Sprintf("same-%d", int(c.float()*5))
	}
	r.DryRun = c.chance(0.1)
	c.mu.Lock()
	replica := c.replicas[c.random.IntN(len(c.replicas))]
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	if c.chance(0.1) {
		time.AfterFunc(c.upTo(time.Second), cancel)
	}
	a := replica.Reserve(ctx, r)
	c.tally(string(a.Decision))
	if most := c.mostTaken(begin); a.Decision == ledger.Exceeded && most+r.Holding.Charge.Slices <= chaosLimit {
		c.t.Errorf("%s was denied %d slices, and at most %d of %d were taken while it waited", r.Name, r.Holding.Charge.Slices, most, chaosLimit)
	}
	if a.Decision != ledger.Admitted || r.DryRun || c.chance(0.3) { // other webhooks deny three in ten
		return
	}
	wait := c.upTo(20 * time.Millisecond)
	if c.chance(0.1) {
		wait = c.upTo(requestBound - time.Since(begin)) // etcd is slow
	}
	time.Sleep(wait)
	if err := c.cluster.CreatePod(ledger.Pod{UID: r.PodUID, Name: r.Name, Holding: r.Holding}); err != nil {
		c.tally("name taken")
		return
	}
	held, _ := c.cluster.Live("team-a")
	c.mu.Lock()
	c.most = max(c.most, held.Slices)
	c.mu.Unlock()
	time.Sleep(c.upTo(40 * time.Second))
	if c.chance(0.3) {
		c.cluster.EndPod(r.PodUID)
		time.Sleep(c.upTo(10 * time.Second))
	}
	if c.chance(0.9) {
		c.cluster.DeletePod(r.PodUID)
	}
}

// run lets the users loose for a while and returns when all have left.
func (c *chaos) run() {
	ctx, cancel := context.WithCancel(c.t.Context())
	var replicas, users sync.WaitGroup
	for range 3 {
		c.replicas = append(c.replicas, c.replicaWithSkew(ctx, &replicas))
	}
	for i := range chaosRequests {
		users.Go(func() {
			time.Sleep(c.upTo(2 * time.Minute))
			c.user(i)
		})
	}
	for range 20 {
		time.Sleep(c.upTo(12 * time.Second))
		i := int(c.float() * 3)
		c.mu.Lock()
		dying := c.replicas[i]
		c.mu.Unlock()
		fresh := c.replicaWithSkew(ctx, &replicas)
		c.mu.Lock()
		c.replicas[i] = fresh
		c.mu.Unlock()
		dying.Close()
	}
	users.Wait()
	c.calm.Store(true)
	time.Sleep(ledger.ReservationTTL + 25*time.Second) // the clocks differ by up to twenty
	cancel()
	replicas.Wait()
}

package guard

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

const gib = int64(1) << 30

// pod is a pod on one device, whose only tenant uses what the script returns.
type pod struct {
	mu         sync.Mutex
	uses       func(time.Duration) int64
	began      time.Time
	dead       bool
	fault      string
	ages       []time.Duration
	samples    []time.Duration
	reported   []string // kinds of events and orders
	outcomes   []Outcome
	states     []State
	denied     *Outcome      // what Acquire returns
	dies       time.Duration // from Terminate to the exit
	released   int
	terminated int
}

func (p *pod) Sample(_ context.Context, maxAge time.Duration) Sample {
	time.Sleep(time.Millisecond) // what a sample takes, and what moves the clock
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Since(p.began)
	p.samples, p.ages = append(p.samples, at), append(p.ages, maxAge)
	s := Sample{Taken: time.Now(), Fault: p.fault}
	d := Device{ID: "gpu0", Listed: s.Taken, TotalBytes: 80 * gib, UsedBytes: 20 * gib}
	if bytes := p.uses(at); bytes > 0 && !p.dead {
		d.Processes = []Process{{PID: 214, Start: 7, Container: "trainer", Command: "python", UsedBytes: bytes, Known: true}}
	}
	s.Devices = []Device{d}
	return s
}

func (p *pod) Report(e Event) {
	p.reported = append(p.reported, string(e.Kind))
	if e.Outcome != nil {
		p.outcomes = append(p.outcomes, *e.Outcome)
	}
}

func (p *pod) Ordered(o Order)            { p.reported = append(p.reported, string(o.Kind)) }
func (p *pod) Observed(_ Sample, s State) { p.states = append(p.states, s) }
func (p *pod) Release()                   { p.mu.Lock(); defer p.mu.Unlock(); p.released++ }

func (p *pod) Acquire(context.Context, Order) (Target, Outcome) {
	if p.denied != nil {
		return nil, *p.denied
	}
	return p, Outcome{}
}

func (p *pod) Terminate(ctx context.Context) Outcome {
	p.terminated++
	select {
	case <-time.After(p.dies):
	case <-ctx.Done():
		return Outcome{Result: TimedOut, Reason: "the guard is stopping"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	return Outcome{Result: Terminated, Signal: "SIGTERM"}
}

// run runs a guard over the pod for a time.
func (p *pod) run(l limits.Limits, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	p.began = time.Now()
	g := Guard{Limits: l, Sampler: p, Terminator: p, Reporter: p, Jitter: func(d time.Duration) time.Duration { return d }}
	g.Run(ctx)
}

func trainer() limits.Limits {
	l := limits.Default()
	l.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 * gib, LimitBytes: 8 * gib, GPUs: 1}}
	return l
}

func after(at time.Duration, low, high int64) func(time.Duration) int64 {
	return func(now time.Duration) int64 {
		if now < at {
			return low
		}
		return high
	}
}

func TestRunTerminatesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{uses: after(10*time.Second, 6*gib, 9*gib), dies: 3 * time.Second}
		p.run(trainer(), time.Minute)
		if want := []string{"near limit", "confirm", "terminate process", "termination result", "below limit"}; !slices.Equal(p.reported, want) {
			t.Errorf("reported %q, want %q", p.reported, want)
		}
		if p.terminated != 1 || p.released != 1 {
			t.Errorf("terminated %d times and released %d times, want once each", p.terminated, p.released)
		}
		if last := p.samples[len(p.samples)-1]; last < 55*time.Second {
			t.Errorf("the last sample was at %s of a minute", last)
		}
	})
}

func TestRunSamplesDuringATermination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{uses: after(0, 0, 9*gib), dies: 10 * time.Second}
		p.run(trainer(), 12*time.Second)
		if n := len(p.samples); n < 20 {
			t.Errorf("%d samples in 12 s with a tenant over its slice", n)
		}
		if p.terminated != 1 {
			t.Errorf("terminated %d times while the first was in progress", p.terminated)
		}
	})
}

func TestRunConfirmsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := trainer()
		l.Grace = 0
		p := &pod{uses: after(5*time.Second, 6*gib, 9*gib), dies: time.Millisecond}
		p.run(l, 20*time.Second)
		i := slices.IndexFunc(p.samples, func(at time.Duration) bool { return at >= 5*time.Second })
		if gap := p.samples[i+1] - p.samples[i]; gap > 2*time.Millisecond || p.ages[i+1] != 0 {
			t.Errorf("the second sample came %s after the first, over a list of up to %s", gap, p.ages[i+1])
		}
	})
}

func TestRunSamplesAfterAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{}
		p.uses = func(time.Duration) int64 {
			if len(p.samples) < 3 {
				return 9 * gib
			}
			return 7 * gib
		}
		l := trainer()
		l.Grace = 0
		p.run(l, 5*time.Second)
		if p.terminated != 0 || p.released != 1 {
			t.Errorf("terminated %d, released %d: want the target released and nothing terminated", p.terminated, p.released)
		}
		if got := p.outcomes[len(p.outcomes)-1]; got.Result != Gone {
			t.Errorf("reported %+v, want gone", got)
		}
	})
}

func TestRunSamplesAfterAcquireMoreThanOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{}
		p.uses = func(time.Duration) int64 {
			if len(p.samples) == 3 || len(p.samples) == 4 { // the first two after it was acquired
				return 7 * gib
			}
			return 9 * gib
		}
		l := trainer()
		l.Grace = 0
		p.run(l, 5*time.Second)
		if p.terminated != 1 || len(p.outcomes) != 1 {
			t.Errorf("terminated %d times with outcomes %+v, want one that frees and allocates in turns terminated at once",
				p.terminated, p.outcomes)
		}
	})
}

func TestRunDryRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{uses: after(0, 0, 9*gib)}
		l := trainer()
		l.DryRun = true
		p.run(l, 30*time.Second)
		if p.terminated != 0 || p.released == 0 {
			t.Errorf("terminated %d, released %d: a dry run acquires and terminates nothing", p.terminated, p.released)
		}
	})
}

func TestRunDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{uses: after(0, 0, 9*gib), denied: &Outcome{Result: Denied, Reason: "operation not permitted"}}
		p.run(trainer(), 50*time.Second)
		var reports, orders int
		for _, kind := range p.reported {
			switch kind {
			case string(TerminationResult):
				reports++
			case string(TerminateProcess):
				orders++
			}
		}
		if reports != 1 || orders != 4 {
			t.Errorf("%d reports and %d orders in 50 s; want 1 report, and an order each 15 s", reports, orders)
		}
	})
}

func TestRunReportsNotEnforcing(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := trainer()
			l.Interval = interval
			p := &pod{uses: after(0, 0, 6*gib)}
			var faulted time.Time
			go func() {
				time.Sleep(17 * time.Second)
				p.mu.Lock()
				defer p.mu.Unlock()
				p.fault, faulted = "the driver has not answered for 1.5s", time.Now()
			}()
			p.run(l, time.Minute)
			for _, s := range p.states {
				if s.NotEnforcing() != "" {
					if took := s.SampledAt.Sub(faulted); took > 10*time.Second {
						t.Errorf("interval %s: reported after %s", interval, took)
					}
					return
				}
			}
			t.Errorf("interval %s: never reported", interval)
		})
	}
}

func TestRunStopsDuringATermination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{uses: after(0, 0, 9*gib), dies: time.Hour}
		p.run(trainer(), 10*time.Second)
		if took := time.Since(p.began); took > 11*time.Second || p.released != 1 {
			t.Errorf("stopped after %s, released %d", took, p.released)
		}
		if len(p.outcomes) != 1 || p.outcomes[0].Result != TimedOut || p.reported[len(p.reported)-1] != "termination result" {
			t.Errorf("reported %q with outcomes %+v, want the outcome last", p.reported, p.outcomes)
		}
	})
}

func TestSampleInterval(t *testing.T) {
	t.Parallel()
	l := trainer()
	for name, tc := range map[string]struct {
		state State
		wait  time.Duration
		age   time.Duration
	}{
		"a quiet pod is sampled at the interval": {State{}, 2 * time.Second, 10 * time.Second},
		"a container over its slice is sampled fast, with a new list": {
			State{Usages: []Usage{{Container: "trainer", OverSince: epoch}}}, 250 * time.Millisecond, 0},
		"one that is not terminated does not cost a list each time": {
			State{Usages: []Usage{{Container: "trainer", OverSince: epoch, Reported: "so", NearLimit: 9}}}, 250 * time.Millisecond, time.Second},
		"one that was over its slice lately is sampled fast": {State{Usages: []Usage{{Container: "trainer", OverFor: time.Second}}},
			250 * time.Millisecond, 10 * time.Second},
		"one that grows is sampled half way to the threshold": {
			State{Usages: []Usage{{Container: "trainer", SliceBytes: 8 * gib, UsedBytes: 4 * gib, GrowthRate: float64(2 * gib)}}},
			900 * time.Millisecond, 10 * time.Second},
		"one that grows slowly is not sampled sooner": {
			State{Usages: []Usage{{Container: "trainer", SliceBytes: 8 * gib, UsedBytes: gib, GrowthRate: 1000}}},
			2 * time.Second, 10 * time.Second},
		"one that grows at once is not sampled faster than fast": {
			State{Usages: []Usage{{Container: "trainer", UsedBytes: 7 * gib, GrowthRate: float64(80 * gib)}}},
			250 * time.Millisecond, 10 * time.Second},
		"a first failure is tried again fast": {State{Devices: []DeviceStatus{{Failures: 1}}}, 250 * time.Millisecond, 0},
		"failures back off":                   {State{Devices: []DeviceStatus{{Failures: 3}}}, time.Second, 0},
		"and never beyond the interval":       {State{Devices: []DeviceStatus{{Failures: 99999}}}, 2 * time.Second, 0},
		"a doubt that is not reported needs new lists": {
			State{Usages: []Usage{{Container: "trainer", DoubtSince: epoch}}}, 2 * time.Second, time.Second},
		"one that was reported does not": {
			State{Usages: []Usage{{Container: "trainer", DoubtSince: epoch, Doubted: true}}}, 2 * time.Second, 10 * time.Second},
		"an orphan that is not reported needs new lists": {State{Orphaned: []Orphaned{{}}}, 2 * time.Second, time.Second},
		"the fastest of several containers decides": {State{Usages: []Usage{{Container: "trainer"}, {NearLimit: 1}}},
			250 * time.Millisecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if wait, age := SampleInterval(tc.state, l); wait != tc.wait || age != tc.age {
				t.Errorf("got %s, %s; want %s, %s", wait, age, tc.wait, tc.age)
			}
		})
	}
}

func TestStepDoesNotChangeItsState(t *testing.T) {
	t.Parallel()
	l := trainer()
	p := &pod{uses: after(0, 0, 9*gib), began: time.Now()}
	s1, _, _ := Step(State{}, p.Sample(t.Context(), 0), l)
	usage := s1.Usages[0]
	s2, _, _ := Step(s1, p.Sample(t.Context(), 0), l)
	if s1.Usages[0].NearLimit != usage.NearLimit || s2.Usages[0].NearLimit != usage.NearLimit+1 {
		t.Errorf("the state given to Step was changed: %+v", s1.Usages[0])
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		used, limit int64
		want        string
	}{
		{9*gib + gib/10, 8 * gib, "9.1Gi of 8Gi"},
		{8*gib + 1, 8 * gib, "8193Mi of 8192Mi"},
		{300 << 20, 512 << 20, "300Mi of 512Mi"},
		{0, 8 * gib, "0 of 8Gi"},
	} {
		if got := share(tc.used, tc.limit); got != tc.want {
			t.Errorf("share(%d, %d) = %q, want %q", tc.used, tc.limit, got, tc.want)
		}
	}
	if got := strings.Join([]string{FormatDuration(3200 * time.Millisecond), FormatDuration(2 * time.Second)}, " "); got != "3.2s 2s" {
		t.Errorf("spans read %q", got)
	}
}

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

// pod is a pod on one device, whose only tenant holds what the script says.
type pod struct {
	mu     sync.Mutex
	holds  func(time.Duration) int64
	began  time.Time
	dead   bool
	fault  string
	ages   []time.Duration
	looks  []time.Duration
	said   []Action
	states []State
	// what the hands do
	refuse   *Outcome
	dies     time.Duration // from End to the exit
	released int
	ended    int
}

func (p *pod) Look(_ context.Context, maxAge time.Duration) Sample {
	time.Sleep(time.Millisecond) // what a look takes, and what moves the clock
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Since(p.began)
	p.looks, p.ages = append(p.looks, at), append(p.ages, maxAge)
	s := Sample{Taken: time.Now(), Fault: p.fault}
	d := Device{ID: "gpu0", Listed: s.Taken, TotalBytes: 80 * gib, UsedBytes: 20 * gib}
	if bytes := p.holds(at); bytes > 0 && !p.dead {
		d.Processes = []Process{{PID: 214, Start: 7, Container: "trainer", Command: "python", UsedBytes: bytes, Known: true}}
	}
	s.Devices = []Device{d}
	return s
}

func (p *pod) Say(a Action)            { p.mu.Lock(); defer p.mu.Unlock(); p.said = append(p.said, a) }
func (p *pod) Saw(_ Sample, s State)   { p.states = append(p.states, s) }
func (p *pod) Release()                { p.mu.Lock(); defer p.mu.Unlock(); p.released++ }
func (p *pod) kinds() (kinds []string) { return kindsOf(p.said) }

func (p *pod) Hold(context.Context, Order) (Held, Outcome) {
	if p.refuse != nil {
		return nil, *p.refuse
	}
	return p, Outcome{}
}

func (p *pod) End(ctx context.Context) Outcome {
	p.ended++
	select {
	case <-time.After(p.dies):
	case <-ctx.Done():
		return Outcome{Result: Stuck, Reason: "the guard is stopping"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	return Outcome{Result: Ended, Signal: "SIGTERM"}
}

func kindsOf(actions []Action) (kinds []string) {
	for _, a := range actions {
		kinds = append(kinds, string(a.Kind))
	}
	return kinds
}

// run runs a guard over the pod for a time.
func (p *pod) run(l limits.Limits, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	p.began = time.Now()
	g := Guard{Limits: l, Eyes: p, Hands: p, Voice: p, Jitter: func(d time.Duration) time.Duration { return d }}
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

func TestAHogIsEndedOnceAndTheLoopGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{holds: after(10*time.Second, 6*gib, 9*gib), dies: 3 * time.Second}
		p.run(trainer(), time.Minute)
		if want := []string{"warn", "confirm", "end process", "report", "eased"}; !slices.Equal(p.kinds(), want) {
			t.Errorf("said %q, want %q", p.kinds(), want)
		}
		if p.ended != 1 || p.released != 1 {
			t.Errorf("ended %d times and let go %d times, want once each", p.ended, p.released)
		}
		if last := p.looks[len(p.looks)-1]; last < 55*time.Second {
			t.Errorf("the last look was at %s of a minute", last)
		}
	})
}

func TestTheLoopLooksOnWhileATenantIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{holds: after(0, 0, 9*gib), dies: 10 * time.Second}
		p.run(trainer(), 12*time.Second)
		if n := len(p.looks); n < 20 {
			t.Errorf("%d looks in 12 s with a tenant past its slice", n)
		}
		if p.ended != 1 {
			t.Errorf("ended %d times while the first was in hand", p.ended)
		}
	})
}

func TestTheSecondLookIsTakenAtOnceWithANewList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := trainer()
		l.Grace = 0
		p := &pod{holds: after(5*time.Second, 6*gib, 9*gib), dies: time.Millisecond}
		p.run(l, 20*time.Second)
		i := slices.IndexFunc(p.looks, func(at time.Duration) bool { return at >= 5*time.Second })
		if gap := p.looks[i+1] - p.looks[i]; gap > 2*time.Millisecond || p.ages[i+1] != 0 {
			t.Errorf("the second look came %s after the first, over a list of up to %s", gap, p.ages[i+1])
		}
	})
}

func TestALookAfterTheHoldThatFindsItWithinSparesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{}
		p.holds = func(time.Duration) int64 {
			if len(p.looks) < 3 {
				return 9 * gib
			}
			return 7 * gib
		}
		l := trainer()
		l.Grace = 0
		p.run(l, 5*time.Second)
		if p.ended != 0 || p.released != 1 {
			t.Errorf("ended %d, released %d: want the hold let go and nothing ended", p.ended, p.released)
		}
		if got := p.said[len(p.said)-1]; got.Outcome.Result != Gone {
			t.Errorf("reported %+v, want gone", got.Outcome)
		}
	})
}

func TestADryRunHoldsAndLetsGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{holds: after(0, 0, 9*gib)}
		l := trainer()
		l.DryRun = true
		p.run(l, 30*time.Second)
		if p.ended != 0 || p.released == 0 {
			t.Errorf("ended %d, released %d: a dry run takes hold and ends nothing", p.ended, p.released)
		}
	})
}

func TestAHandThatIsRefusedTriesAgainAfterTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{holds: after(0, 0, 9*gib), refuse: &Outcome{Result: Refused, Reason: "operation not permitted"}}
		p.run(trainer(), 50*time.Second)
		var reports, orders int
		for _, a := range p.said {
			switch a.Kind {
			case Report:
				reports++
			case EndProcess:
				orders++
			}
		}
		if reports != 1 || orders != 4 {
			t.Errorf("%d reports and %d orders in 50 s; want 1 report, and an order each 15 s", reports, orders)
		}
	})
}

func TestBlindnessIsSaidWithinTenSeconds(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l := trainer()
			l.Interval = interval
			p := &pod{holds: after(0, 0, 6*gib)}
			var faulted time.Time
			go func() {
				time.Sleep(17 * time.Second)
				p.mu.Lock()
				defer p.mu.Unlock()
				p.fault, faulted = "the driver has not answered for 1.5s", time.Now()
			}()
			p.run(l, time.Minute)
			for _, s := range p.states {
				if s.Blind() != "" {
					if took := s.Looked.Sub(faulted); took > 10*time.Second {
						t.Errorf("interval %s: said after %s", interval, took)
					}
					return
				}
			}
			t.Errorf("interval %s: never said", interval)
		})
	}
}

func TestTheLoopStopsWithAnEndingInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pod{holds: after(0, 0, 9*gib), dies: time.Hour}
		p.run(trainer(), 10*time.Second)
		if took := time.Since(p.began); took > 11*time.Second || p.released != 1 {
			t.Errorf("stopped after %s, released %d", took, p.released)
		}
	})
}

func TestPace(t *testing.T) {
	t.Parallel()
	l := trainer()
	for name, tc := range map[string]struct {
		state State
		wait  time.Duration
		age   time.Duration
	}{
		"a quiet pod is looked at at the interval": {State{}, 2 * time.Second, 10 * time.Second},
		"a container past its slice is looked at fast, with a new list": {
			State{Watches: []Watch{{Container: "trainer", Over: epoch}}}, 250 * time.Millisecond, 0},
		"one that is left alone does not cost a list each time": {
			State{Watches: []Watch{{Container: "trainer", Over: epoch, Said: "so", High: 9}}}, 250 * time.Millisecond, time.Second},
		"one that fills is looked at half way to the mark": {
			State{Watches: []Watch{{Container: "trainer", HeldBytes: 4 * gib, FillRate: float64(2 * gib)}}}, 900 * time.Millisecond, 10 * time.Second},
		"one that fills slowly is not looked at sooner": {
			State{Watches: []Watch{{Container: "trainer", HeldBytes: gib, FillRate: 1000}}}, 2 * time.Second, 10 * time.Second},
		"one that fills at once is not looked at faster than fast": {
			State{Watches: []Watch{{Container: "trainer", HeldBytes: 7 * gib, FillRate: float64(80 * gib)}}}, 250 * time.Millisecond, 10 * time.Second},
		"a first failure is tried again fast":       {State{Sensors: []Sensor{{Bad: 1}}}, 250 * time.Millisecond, 0},
		"failures back off":                         {State{Sensors: []Sensor{{Bad: 3}}}, time.Second, 0},
		"and never beyond the interval":             {State{Sensors: []Sensor{{Bad: 99999}}}, 2 * time.Second, 0},
		"the fastest of several containers decides": {State{Watches: []Watch{{Container: "trainer"}, {High: 1}}}, 250 * time.Millisecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if wait, age := Pace(tc.state, l); wait != tc.wait || age != tc.age {
				t.Errorf("got %s, %s; want %s, %s", wait, age, tc.wait, tc.age)
			}
		})
	}
}

func TestStepLeavesItsStateAsItWas(t *testing.T) {
	t.Parallel()
	l := trainer()
	p := &pod{holds: after(0, 0, 9*gib), began: time.Now()}
	s1, _ := Step(State{}, p.Look(t.Context(), 0), l)
	watch := s1.Watches[0]
	s2, _ := Step(s1, p.Look(t.Context(), 0), l)
	if s1.Watches[0].High != watch.High || s2.Watches[0].High != watch.High+1 {
		t.Errorf("the state given to Step was changed: %+v", s1.Watches[0])
	}
}

func TestTwoSharesNeverReadTheSame(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		held, wall int64
		want       string
	}{
		{9*gib + gib/10, 8 * gib, "9.1Gi of 8Gi"},
		{8*gib + 1, 8 * gib, "8193Mi of 8192Mi"},
		{300 << 20, 512 << 20, "300Mi of 512Mi"},
		{0, 8 * gib, "0 of 8Gi"},
	} {
		if got := share(tc.held, tc.wall); got != tc.want {
			t.Errorf("share(%d, %d) = %q, want %q", tc.held, tc.wall, got, tc.want)
		}
	}
	if got := strings.Join([]string{Span(3200 * time.Millisecond), Span(2 * time.Second)}, " "); got != "3.2s 2s" {
		t.Errorf("spans read %q", got)
	}
}

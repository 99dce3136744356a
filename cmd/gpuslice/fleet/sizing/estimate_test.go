package sizing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// observe is a history of so many hours at steps of five minutes.
func observe(hours float64, mib func(hour float64) float64) *History {
	h := &History{}
	for at := 0.0; at < hours*3600; at += 300 {
		h.Add(at, mib(at/3600))
	}
	return h
}

func flatAt(mib float64) func(float64) float64 { return func(float64) float64 { return mib } }

func noisy(mib float64) func(float64) float64 {
	r := rand.New(rand.NewPCG(uint64(mib), 1))
	return func(float64) float64 { return mib * (0.9 + 0.1*r.Float64()) }
}

// ordinary is a fleet of 40 workloads that grow by up to a fifth in the second of two weeks.
func ordinary() (all []*Workload) {
	for i := range 40 {
		base, growth := 4000+500*float64(i), 1+float64(i%20)/100
		all = append(all, &Workload{Group: "team-a", Memory: observe(336, func(h float64) float64 {
			if h > 168 {
				return base * growth * (0.9 + 0.1*math.Abs(math.Sin(h)))
			}
			return base * (0.9 + 0.1*math.Abs(math.Sin(h)))
		})})
	}
	return all
}

func TestEstimateVerdicts(t *testing.T) {
	fleet := NewFleet(ordinary(), 0.95, 168)
	for _, c := range []struct {
		name string
		w    Workload
		want Verdict
		mark Mark
	}{
		{"twice what it needs", Workload{Memory: observe(240, noisy(10_000)), Slice: 24_000}, OverRequested, ""},
		{"what it needs", Workload{Memory: observe(240, noisy(10_000)), Slice: 12_200}, Right, ""},
		{"less than it needs", Workload{Memory: observe(240, noisy(10_000)), Slice: 10_500}, AtRisk, ""},
		{"at its slice", Workload{Memory: observe(240, noisy(10_000)), Slice: 10_000}, AtRisk, markLimit},
		{"terminated", Workload{Memory: observe(240, noisy(10_000)), Slice: 24_000, Events: Events{Terminated: 1}}, AtRisk, ""},
		{"no slice, on a card", Workload{Memory: observe(240, noisy(10_000)), Device: 80_000}, OverRequested, ""},
		{"nothing to compare with", Workload{Memory: observe(240, noisy(10_000))}, NoSlice, ""},
		{"five hours", Workload{Memory: observe(5, noisy(10_000)), Slice: 24_000}, NotEnoughHistory, markShort},
		{"no sample", Workload{Memory: &History{}}, NotEnoughHistory, ""},
		{"idle", Workload{Memory: observe(240, noisy(450)), Slice: 24_000}, Idle, ""},
		{"takes what it is given", Workload{Memory: observe(240, flatAt(18_000)), Slice: 20_000}, TakesWhatIsGiven, ""},
		{"an engine on an unknown card", Workload{Memory: observe(240, flatAt(18_000)), Engine: true}, TakesWhatIsGiven, ""},
		{"leaks", Workload{Memory: observe(240, func(h float64) float64 { return 4000 + 40*h }), Slice: 24_000}, AtRisk, markLeak},
		{"one day", Workload{Memory: observe(30, noisy(10_000)), Slice: 24_000}, OverRequested, markShort},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := fleet.Estimate(&c.w)
			if e.Verdict != c.want || c.mark != "" && !slices.Contains(e.Marks, c.mark) {
				t.Errorf("%s %v, want %s %s: %+v", e.Verdict, e.Marks, c.want, c.mark, e)
			}
			sized := slices.Contains([]Verdict{OverRequested, Right, NoSlice}, e.Verdict)
			if sized && (e.Size < e.Peak*leastFactor || e.HoldsFor != 168) {
				t.Errorf("size %g for %g hours with a peak of %g", e.Size, e.HoldsFor, e.Peak)
			}
		})
	}
}

// TestBasis takes the group if it is large enough, then any, then a shorter time, then the table.
func TestBasis(t *testing.T) {
	long := ordinary()
	w := &Workload{Group: "team-a", Memory: observe(200, noisy(10_000))}
	for _, c := range []struct {
		name      string
		workloads []*Workload
		group     string
		following float64
		want      Basis
		holds     float64
	}{
		{"group", long, "team-a", 168, Basis{"team-a", 40, 168, false}, 168},
		{"any group", long, "team-b", 168, Basis{"", 40, 168, false}, 168},
		{"a shorter time", long, "team-a", 672, Basis{"team-a", 40, 24, false}, 336},
		{"table", long[:10], "team-a", 168, Basis{"", 10, 0, true}, tableHolds},
	} {
		t.Run(c.name, func(t *testing.T) {
			own := *w
			own.Group = c.group
			e := NewFleet(c.workloads, 0.95, c.following).Estimate(&own)
			if e.Basis != c.want || e.HoldsFor != c.holds {
				t.Errorf("%+v for %g hours, want %+v for %g", e.Basis, e.HoldsFor, c.want, c.holds)
			}
		})
	}
}

// TestPreallocatorsTeachNothing keeps those that take what they are given from lowering the sizes of others.
func TestPreallocatorsTeachNothing(t *testing.T) {
	w := &Workload{Memory: observe(240, noisy(10_000))}
	alone := NewFleet(ordinary(), 0.95, 168).Estimate(w)
	all := ordinary()
	for range 400 {
		all = append(all, &Workload{Memory: observe(336, flatAt(18_000)), Slice: 20_000})
	}
	if beside := NewFleet(all, 0.95, 168).Estimate(w); beside.Size != alone.Size {
		t.Errorf("size %g beside preallocators, %g without", beside.Size, alone.Size)
	}
}

// TestSizeOfTheFailed recommends no smaller size for a workload that was terminated, or came near its limit.
func TestSizeOfTheFailed(t *testing.T) {
	fleet := NewFleet(ordinary(), 0.95, 168)
	for _, events := range []Events{{NearLimit: 1}, {Terminated: 1}} {
		e := fleet.Estimate(&Workload{Memory: observe(240, noisy(10_000)), Slice: 24_000, Events: events})
		if e.Verdict != AtRisk || e.Size < 24_000 {
			t.Errorf("%+v: %s with a size of %g", events, e.Verdict, e.Size)
		}
	}
}

// TestSizeAbovePeak gives no size below the peak, whatever the device is believed to have.
func TestSizeAbovePeak(t *testing.T) {
	fleet := NewFleet(ordinary(), 0.95, 168)
	for _, device := range []float64{1, 5000, 9999, 10_000, 10_200, 80_000} {
		e := fleet.Estimate(&Workload{Memory: observe(240, noisy(10_000)), Device: device})
		if e.Size < e.Peak || device >= e.Peak && e.Size > device {
			t.Errorf("device of %g: size %g, peak %g", device, e.Size, e.Peak)
		}
	}
}

// TestFlatOnUnknownDevice gives no size for what may be all of a GPU, and does not learn from it.
func TestFlatOnUnknownDevice(t *testing.T) {
	w := &Workload{Memory: observe(240, noisy(10_000))}
	all := ordinary()
	for range 400 {
		all = append(all, &Workload{Memory: observe(336, flatAt(30_000))})
	}
	alone, beside := NewFleet(ordinary(), 0.95, 168).Estimate(w), NewFleet(all, 0.95, 168)
	if e := beside.Estimate(w); e.Size != alone.Size {
		t.Errorf("size %g beside flat histories, %g without", e.Size, alone.Size)
	}
	for peak, want := range map[float64]Verdict{30_000: TakesWhatIsGiven, 10_000: NoSlice} {
		if e := beside.Estimate(&Workload{Memory: observe(240, flatAt(peak))}); e.Verdict != want {
			t.Errorf("%g: %s, want %s", peak, e.Verdict, want)
		}
	}
	if e := beside.Estimate(&Workload{Memory: observe(240, flatAt(30_000)), Device: 80_000}); e.Verdict != OverRequested {
		t.Errorf("on a known device: %s", e.Verdict)
	}
}

package sizing

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestHistoryOrder adds the same samples in any order, some twice: the history is the same.
func TestHistoryOrder(t *testing.T) {
	type sample struct{ seconds, mib float64 }
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var samples []sample
		for range 500 {
			samples = append(samples, sample{1.7e9 + r.Float64()*50*24*3600, r.Float64() * 40_000})
		}
		var sorted, shuffled History
		for _, s := range samples {
			sorted.Add(s.seconds, s.mib)
		}
		r.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
		for _, s := range append(samples, samples[:50]...) {
			shuffled.Add(s.seconds, s.mib)
		}
		if !reflect.DeepEqual(sorted, shuffled) {
			t.Fatalf("seed %d: the order of samples shows", seed)
		}
	}
}

func TestHistoryBounds(t *testing.T) {
	var h History
	for _, s := range [][2]float64{{math.NaN(), 1}, {1, math.NaN()}, {-1, 1}, {1, -1},
		{math.Inf(1), 1}, {1, math.Inf(1)}, {1e300, 1}, {1, 1e12}} {
		if h.Add(s[0], s[1]) {
			t.Errorf("%g MiB at %g is taken", s[1], s[0])
		}
	}
	if h.Hours() != 0 || h.Peak() != 0 {
		t.Errorf("there are %g hours with a peak of %g", h.Hours(), h.Peak())
	}
	h.Add(1e9, 100)
	h.Add(1e9+200*24*3600, 50)
	if h.Peak() != 50 || len(h.hours) > maxHours {
		t.Errorf("after 200 days the peak is %g, in %d hours", h.Peak(), len(h.hours))
	}
	if h.Add(1e9, 100) {
		t.Error("a sample that is 200 days older is taken")
	}
}

// TestHours counts observed hours, whatever the step of the samples.
func TestHours(t *testing.T) {
	for _, step := range []float64{15, 57, 300, 420, 600, 1800, 3600} {
		var h History
		for at := 0.0; at < 48*3600; at += step {
			if at < 10*3600 || at >= 20*3600 {
				h.Add(at+7200, at)
			}
		}
		if got := h.Hours(); math.Abs(got-38) > 2 {
			t.Errorf("step %g: %g hours, want 38", step, got)
		}
		pair, ok := h.Split(10, 6, 0.5)
		if 600 >= step && 3600/step == math.Trunc(3600/step) && ok {
			t.Errorf("step %g: six hours of a gap are an hour after the cut: %v", step, pair)
		}
		if pair, ok = h.Split(12, 0, 1); !ok || pair.Before >= pair.After || pair.After < 47*3600 {
			t.Errorf("step %g: cut into %v", step, pair)
		}
		if _, ok := h.Split(40, 0, 0); ok {
			t.Errorf("step %g: there are 40 hours", step)
		}
	}
}

func FuzzHistory(f *testing.F) {
	f.Add(0.0, 1.0, 1e9, 2.0, -5.0, math.NaN())
	f.Fuzz(func(t *testing.T, s1, m1, s2, m2, s3, m3 float64) {
		var h History
		taken := 0
		for _, s := range [][2]float64{{s1, m1}, {s2, m2}, {s3, m3}} {
			if h.Add(s[0], s[1]) {
				taken++
			}
			h.Start(s[0])
		}
		if len(h.hours) > maxHours || taken == 0 && h.Peak() != 0 || !(h.Peak() >= 0 && h.Peak() <= maxMiB) {
			t.Errorf("%d hours, peak %g", len(h.hours), h.Peak())
		}
		fleet := NewFleet(nil, 0.95, 24)
		if e := fleet.Estimate(&Workload{Memory: &h}); math.IsNaN(e.Size) || e.Size > 0 && e.Size < e.Peak {
			t.Errorf("estimate %+v", e)
		}
	})
}

package sizing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestNeeded(t *testing.T) {
	for coverage, want := range map[float64]int{0.5: 1, 0.9: 9, 0.95: 19, 0.99: 99, 0.999: 999} {
		if got := Needed(coverage); got != want {
			t.Errorf("%g needs %d workloads, want %d", coverage, got, want)
		}
	}
}

// fleets are populations of (before, after): the bound holds for each.
var fleets = map[string]func(r *rand.Rand) Pair{
	"alike": func(r *rand.Rand) Pair {
		return Pair{25_000 * (1 + 0.1*r.NormFloat64()), 35_000 * (1 + 0.15*r.NormFloat64())}
	},
	"of every size": func(r *rand.Rand) Pair {
		before := 1000 * math.Exp(4*r.Float64())
		return Pair{before, before * math.Exp(0.3*r.NormFloat64())}
	},
	"heavy tail": func(r *rand.Rand) Pair {
		before := 1000 * math.Exp(3*r.Float64())
		return Pair{before, before * math.Exp(min(0.2*r.ExpFloat64()/r.Float64(), 5))}
	},
	"two kinds": func(r *rand.Rand) Pair {
		if r.IntN(3) == 0 {
			return Pair{2000 + 100*r.Float64(), 20_000 + 9000*r.Float64()}
		}
		before := 30_000 * (1 + r.Float64())
		return Pair{before, before * (0.9 + 0.3*r.Float64())}
	},
}

// TestCoverage draws fleets and one workload more: the stated part of the sizes holds, or more where the least room above the peak is
// enough.
func TestCoverage(t *testing.T) {
	const draws = 1500
	for name, draw := range fleets {
		for _, c := range []struct {
			others   int
			coverage float64
		}{{19, 0.95}, {40, 0.9}, {60, 0.95}, {120, 0.99}} {
			t.Run(fmt.Sprintf("%s, %d, %g", name, c.others, c.coverage), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, uint64(c.others)))
				held := 0
				for range draws {
					var others []Pair
					for range c.others {
						others = append(others, draw(r))
					}
					own := draw(r)
					size, ok := Calibrate(others).Size(own.Before, c.coverage)
					if !ok || size < own.Before {
						t.Fatalf("size %g, %t for the peak %g", size, ok, own.Before)
					}
					if own.After <= size {
						held++
					}
				}
				if got := float64(held) / draws; got < c.coverage-0.02 {
					t.Errorf("%.3f of the sizes hold, stated %g", got, c.coverage)
				}
			})
		}
	}
}

func TestSizeOfTooFew(t *testing.T) {
	alike := fleets["alike"]
	r := rand.New(rand.NewPCG(1, 2))
	var others []Pair
	for range 18 {
		others = append(others, alike(r))
	}
	c := Calibrate(others)
	if _, ok := c.Size(20_000, 0.95); ok {
		t.Error("18 workloads give a coverage of 95 %")
	}
	if size, fromTable, ok := c.SizeOrTable(20_000, 7, 0.95); !ok || !fromTable || size < 20_000*1.5 {
		t.Errorf("after seven hours the table gives %g, %t, %t", size, fromTable, ok)
	}
	if size, _, _ := Calibrate([]Pair{{10_000, 40_000}}).SizeOrTable(20_000, 7, 0.95); size != 80_000 {
		t.Errorf("another workload grew to four times its peak; the size is %g", size)
	}
	for name, f := range map[string]func() bool{
		"half an hour": func() bool { _, _, ok := c.SizeOrTable(20_000, 0.5, 0.95); return ok },
		"99 %":         func() bool { _, _, ok := c.SizeOrTable(20_000, 7, 0.99); return ok },
	} {
		if f() {
			t.Errorf("%s gives a size", name)
		}
	}
}

// TestSizeOutside takes peaks that no other workload has had: the factor is that of the nearest.
func TestSizeOutside(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var others []Pair
	for range 50 {
		others = append(others, fleets["alike"](r))
	}
	c := Calibrate(others)
	low, _ := c.Size(1000, 0.95)
	lower, _ := c.Size(600, 0.95)
	if factor := low / 1000; factor < 1 || factor > 3 || math.Abs(lower/600-factor) > 1e-9 {
		t.Errorf("factors far below the others: %g, %g", factor, lower/600)
	}
	if high, _ := c.Size(80_000, 0.95); high < 80_000*leastFactor || high > 80_000*1.6 {
		t.Errorf("size %g for a peak of 80000 far above the others", high)
	}
}

func TestCalibrateOfMany(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var others []Pair
	for range 3500 {
		others = append(others, fleets["of every size"](r))
	}
	c := Calibrate(append(others, Pair{0, 9}))
	if n := c.workloads(); n < maxPairs/2 || n > maxPairs {
		t.Errorf("%d pairs are kept", n)
	}
}

package main

import (
	"math"
	"math/rand/v2"
)

// noise is a factor around 1.
func noise(r *rand.Rand, part float64) float64 { return 1 + part*(r.Float64()-0.5) }

// daily is between 0 and 1, with a period of a day.
func daily(hour float64) float64 { return 0.5 + 0.5*math.Sin(2*math.Pi*hour/24) }

func steady(r *rand.Rand, _ func(hour float64)) sampler {
	base := 4000 + 30_000*r.Float64()
	return func(float64) float64 { return base * noise(r, 0.1) }
}

func dailySeason(r *rand.Rand, _ func(hour float64)) sampler {
	base := 4000 + 20_000*r.Float64()
	return func(h float64) float64 { return base * (1 + daily(h)) * noise(r, 0.1) }
}

func startUpSpike(r *rand.Rand, start func(hour float64)) sampler {
	base, next := 4000+10_000*r.Float64(), 0.0
	return func(h float64) float64 {
		if h >= next {
			start(h)
			next = h + 100 + 100*r.Float64()
			return base * 2 * noise(r, 0.2)
		}
		return base * noise(r, 0.1)
	}
}

func leak(r *rand.Rand, _ func(hour float64)) sampler {
	base, slope := 4000+4000*r.Float64(), 20+60*r.Float64()
	return func(h float64) float64 { return (base + slope*h) * noise(r, 0.05) }
}

func slowLeak(r *rand.Rand, _ func(hour float64)) sampler {
	base, slope := 10_000+10_000*r.Float64(), 2+4*r.Float64()
	return func(h float64) float64 { return (base + slope*h) * noise(r, 0.01) }
}

func leakWithRestarts(r *rand.Rand, start func(hour float64)) sampler {
	base, slope, began, next := 4000+4000*r.Float64(), 50+100*r.Float64(), 0.0, 0.0
	return func(h float64) float64 {
		if h >= next {
			start(h)
			began, next = h, h+24+120*r.Float64()
		}
		return base + slope*(h-began)
	}
}

func weeklyBatch(r *rand.Rand, _ func(hour float64)) sampler {
	base, day := 2000+2000*r.Float64(), 24*float64(r.IntN(7))
	return func(h float64) float64 {
		if in := math.Mod(h, oneWeek) - day; in >= 2 && in < 4 {
			return 8 * base * noise(r, 0.1)
		}
		return base * noise(r, 0.1)
	}
}

func restartLoop(r *rand.Rand, start func(hour float64)) sampler {
	base, began, next := 4000+10_000*r.Float64(), 0.0, 0.0
	return func(h float64) float64 {
		if h >= next {
			start(h)
			began, next = h, h+0.2+0.5*r.Float64()
		}
		return min(base, base*2*(h-began)) * noise(r, 0.2)
	}
}

func twoModes(r *rand.Rand, _ func(hour float64)) sampler {
	low, high, next, in := 2000+2000*r.Float64(), 20_000+20_000*r.Float64(), 0.0, false
	return func(h float64) float64 {
		if h >= next {
			in, next = !in, h+6+48*r.Float64()
		}
		if in {
			return high * noise(r, 0.1)
		}
		return low * noise(r, 0.1)
	}
}

func preallocator(r *rand.Rand, _ func(hour float64)) sampler {
	part := []float64{0.75, 0.88, 0.9, 0.95}[r.IntN(4)]
	return func(float64) float64 { return cardMemory * part }
}

func preallocatorInSlice(r *rand.Rand, _ func(hour float64)) sampler {
	part := 0.85 + 0.1*r.Float64()
	return func(float64) float64 { return 20_000 * part * noise(r, 0.01) }
}

func idle(r *rand.Rand, _ func(hour float64)) sampler {
	wakes := twoWeeks + oneWeek*r.Float64()
	return func(h float64) float64 {
		if h >= wakes {
			return 20_000
		}
		return 400 * r.Float64()
	}
}

func growing(r *rand.Rand, _ func(hour float64)) sampler {
	base, factor, next := 3000+3000*r.Float64(), 1.0, 72.0
	return func(h float64) float64 {
		if h >= next {
			factor, next = factor*1.3, next+72
		}
		return min(base*factor*noise(r, 0.05), cardMemory)
	}
}

func growingUntilWarm(r *rand.Rand, _ func(hour float64)) sampler {
	base, hours := 10_000+10_000*r.Float64(), 20+100*r.Float64()
	return func(h float64) float64 { return base * (2 - math.Exp(-h/hours)) * noise(r, 0.03) }
}

func shrinking(r *rand.Rand, _ func(hour float64)) sampler {
	base := 20_000 + 20_000*r.Float64()
	return func(h float64) float64 { return base * (0.4 + 0.6*math.Exp(-h/150)) * noise(r, 0.1) }
}

func newRelease(r *rand.Rand, start func(hour float64)) sampler {
	base, at, started := 5000+10_000*r.Float64(), twoWeeks-20*r.Float64(), false
	return func(h float64) float64 {
		if h < at {
			return base * noise(r, 0.1)
		}
		if !started {
			start(h)
			started = true
		}
		return base * min(2, 1.3+0.7*(h-at)/60) * noise(r, 0.1)
	}
}

func rareSpikes(r *rand.Rand, _ func(hour float64)) sampler {
	base := 3000 + 3000*r.Float64()
	return func(float64) float64 {
		if r.Float64() < 1.0/600 {
			return base * (1.5 + r.ExpFloat64()*1.5)
		}
		return base * noise(r, 0.1)
	}
}

func cutOffAtSlice(r *rand.Rand, _ func(hour float64)) sampler {
	base := 9000 + 4000*r.Float64()
	return func(h float64) float64 {
		if use := base * (1 + 0.5*daily(h)) * noise(r, 0.1); h > twoWeeks {
			return use
		} else {
			return min(use, 12_000)
		}
	}
}

func gaps(r *rand.Rand, _ func(hour float64)) sampler {
	base, next, seen := 5000+10_000*r.Float64(), 0.0, false
	return func(h float64) float64 {
		if h >= next {
			seen = !seen
			next = h + 3 + 3*r.Float64()
			if !seen {
				next += 10
			}
		}
		if use := base * (1 + 0.5*daily(h)) * noise(r, 0.2); seen || h > twoWeeks {
			return use
		}
		return math.NaN()
	}
}

func shortJobs(r *rand.Rand, start func(hour float64)) sampler {
	base, next, size := 3000+3000*r.Float64(), 0.0, 0.0
	return func(h float64) float64 {
		if h >= next {
			start(h)
			next, size = h+0.5+2*r.Float64(), base*math.Exp(0.4*r.NormFloat64())
		}
		return size
	}
}

func randomWalk(r *rand.Rand, _ func(hour float64)) sampler {
	use, center := 0.0, 10_000+10_000*r.Float64()
	return func(float64) float64 {
		use += 0.01 * r.NormFloat64()
		return min(center*math.Exp(use), cardMemory)
	}
}

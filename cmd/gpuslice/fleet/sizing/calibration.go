package sizing

import (
	"math"
	"slices"
)

// Pair is the history of a workload, cut in two: the peaks before and after the cut, in MiB.
type Pair struct{ Before, After float64 }

// DriverContext is the memory of a GPU that a process takes before it has allocated anything, in MiB: a few hundred, by
// driver and libraries. No size is below it, and a workload that never took more is idle.
const DriverContext = 512

const (
	// ridge is the penalty of the slope, in units of the sum of squares of log(before): it steadies the slope of small fleets. It was
	// chosen on one trace (0.03 to 0.3 make no difference there), and coverage does not depend on it.
	ridge = 0.1
	// leastFactor is the least room above the peak so far: between two samples nobody looked.
	leastFactor = 1.03
	// maxPairs bounds the work of one estimate. More pairs add no precision that anybody could see.
	maxPairs = 1000
)

// Calibration derives a size from a peak by pairs of other workloads.
type Calibration struct {
	x, z       []float64 // log(before) and log(after/before), x less its middle
	middle     float64
	least      float64 // of x
	most       float64
	sx, sxx    float64
	sz, sxz    float64
	mostFactor float64
}

// Calibrate takes the pairs in which memory was used before the cut; of more than a thousand, a thousand evenly.
func Calibrate(pairs []Pair) *Calibration {
	c := &Calibration{mostFactor: 1}
	step := max(float64(len(pairs))/maxPairs, 1)
	for i := 0.0; int(i) < len(pairs); i += step {
		p := pairs[int(i)]
		if p.Before < DriverContext {
			continue
		}
		after := max(p.After, DriverContext)
		c.x = append(c.x, math.Log(p.Before))
		c.z = append(c.z, math.Log(after/p.Before))
		c.mostFactor = max(c.mostFactor, after/p.Before)
	}
	if len(c.x) == 0 {
		return c
	}
	for _, x := range c.x {
		c.middle += x / float64(len(c.x))
	}
	for i := range c.x {
		c.x[i] -= c.middle
		c.sx, c.sxx = c.sx+c.x[i], c.sxx+c.x[i]*c.x[i]
		c.sz, c.sxz = c.sz+c.z[i], c.sxz+c.x[i]*c.z[i]
	}
	c.least, c.most = slices.Min(c.x), slices.Max(c.x)
	return c
}

// workloads is how many pairs count.
func (c *Calibration) workloads() int { return len(c.x) }

// rank is which of n sorted bounds holds at a coverage.
func rank(n int, coverage float64) int { return int(math.Ceil(float64(n+1)*coverage - 1e-9)) }

// Needed is the least number of other workloads from which a coverage between 0 and 1 can be had.
func Needed(coverage float64) int {
	n := max(int(coverage/(1-coverage))-1, 1)
	for rank(n, coverage) > n {
		n++
	}
	return n
}

// Size is the memory in MiB that the later peak exceeds with a probability of 1-coverage, given the peak so far. It reports false if
// there are too few workloads.
func (c *Calibration) Size(peak, coverage float64) (mib float64, ok bool) {
	k := rank(len(c.x), coverage)
	if k > len(c.x) || peak <= 0 {
		return 0, false
	}
	// A peak outside the range of the others is treated as the nearest: the slope is not known further out.
	x0 := min(max(math.Log(peak)-c.middle, c.least), c.most)
	bounds := c.bounds(x0)
	slices.Sort(bounds)
	return max(peak*leastFactor, peak*math.Exp(bounds[k-1]), DriverContext), true
}

// bounds are, for each pair, the log factor of a workload at x0 from which on its residual is larger than that of the pair, where
// the regression is that of all pairs and the workload together.
func (c *Calibration) bounds(x0 float64) []float64 {
	n, sx, sxx := float64(len(c.x)+1), c.sx+x0, c.sxx+x0*x0+ridge
	det := n*sxx - sx*sx
	m00, m01, m11 := sxx/det, -sx/det, n/det // the inverse of the matrix of the normal equations
	slope := m01*c.sz + m11*c.sxz
	leverage := func(a float64) float64 { return m00 + m01*(a+x0) + m11*a*x0 }
	own := leverage(x0)
	out := make([]float64, len(c.x))
	for i, x := range c.x {
		if d := 1 - own + leverage(x); d > 0.01 {
			out[i] = (c.z[i] - (x-x0)*slope) / d
		} else {
			out[i] = math.Inf(1) // the workload alone decides the slope there
		}
	}
	return out
}

package sizing

import (
	"math"
	"slices"
)

// Mark names a reason why a size is less sure than its coverage, or sets it.
type Mark string

// Marks of a history.
const (
	markShort    Mark = "short-history" // less than eight days: weekly peaks may be missing
	markGrowing  Mark = "growing"       // the later half is higher than the earlier one, or it rises steadily
	markLeak     Mark = "leak"          // it rises without end
	markStartup  Mark = "startup-peak"  // the peak is that of a start
	markRare     Mark = "rare-peak"     // the peak is that of a few hours
	markRestarts Mark = "restarts"      // its containers start more often than every six hours
	markUneven   Mark = "uneven-days"   // the peaks of its days differ by a quarter
	markModes    Mark = "two-modes"     // it goes between a low and a high use
	markGaps     Mark = "gaps"          // it was observed less than half of the time
	markLimit    Mark = "at-limit"      // its peak is the slice: its need is unknown
)

// Thresholds of marks. They were chosen on generated histories (test/backtest), not on a trace.
const (
	fullWeek     = 8 * 24 // hours
	aDay         = 24
	halfGrowth   = 1.1  // later half over earlier half
	nearPeak     = 0.85 // of the peak
	rareShare    = 0.05 // of the hours
	steadyFit    = 0.7  // R² of the line
	leakRise     = 0.15 // of the mean, over the history
	growRise     = 0.03
	lifeHours    = 12   // of a container, for its line to count
	unevenRatio  = 1.25 // of the highest day to the lowest
	startupRatio = 1.2
	flatRange    = 0.02 // of the peak
	givenShare   = 0.70 // of the given memory, taken by a process which preallocates
	atLimitShare = 0.97
	largeFlat    = 16 << 10 // MiB, of a process that may have taken all of a GPU whose memory is not known
)

// marks are the marks of a history, where given is the slice or device in MiB; 0: unknown.
func (h *History) marks(given float64) (marks []Mark) {
	add := func(m Mark, holds bool) {
		if holds {
			marks = append(marks, m)
		}
	}
	peaks := h.observed()
	peak, hours := slices.Max(peaks), h.Hours()
	fit, rise := line(peaks)
	leak := len(peaks) >= aDay && fit >= steadyFit && rise >= leakRise && slices.Max(peaks[len(peaks)*3/4:]) == peak
	add(markShort, hours < fullWeek)
	add(markLeak, leak)
	add(markGrowing, !leak && (grows(peaks) || len(peaks) >= aDay && fit >= steadyFit && rise >= growRise || h.growsInLives()))
	add(markStartup, h.peaksAtStart())
	add(markRare, len(peaks) >= aDay && float64(above(peaks, nearPeak*peak)) <= max(2, rareShare*float64(len(peaks))))
	add(markRestarts, h.starts() >= 10 && float64(h.starts()) >= hours/6)
	add(markUneven, h.unevenDays())
	add(markModes, len(peaks) >= aDay && twoModes(peaks))
	add(markGaps, len(h.hours) >= aDay && hours < float64(len(h.hours))/2)
	add(markLimit, given > 0 && peak >= atLimitShare*given)
	return marks
}

func above(peaks []float64, threshold float64) (n int) {
	for _, p := range peaks {
		if p >= threshold {
			n++
		}
	}
	return n
}

// grows reports whether the later half has a higher peak than the earlier one by a tenth.
func grows(peaks []float64) bool {
	half := len(peaks) / 2
	return half >= 3 && slices.Max(peaks[half:]) > halfGrowth*slices.Max(peaks[:half])
}

// growsInLives reports whether, for half of the hours, memory rises steadily from a start of a container to the next.
func (h *History) growsInLives() bool {
	var life []float64
	rising, all := 0, 0
	end := func() {
		if fit, rise := line(life); len(life) >= lifeHours && fit >= steadyFit && rise >= leakRise {
			rising += len(life)
		}
		life = life[:0]
	}
	for _, o := range h.hours {
		if o.starts > 0 {
			end()
		}
		if o.slots != 0 {
			life = append(life, float64(o.peak))
			all++
		}
	}
	end()
	return all >= aDay && 2*rising >= all
}

// unevenDays reports whether the days that were observed for most of their hours have peaks that differ by a quarter.
func (h *History) unevenDays() bool {
	var lowest, highest float64
	days := 0
	for day := range slices.Chunk(h.hours, aDay) {
		seen := 0
		for _, o := range day {
			if o.slots != 0 {
				seen++
			}
		}
		if peak := peakOf(day); seen >= aDay*3/4 {
			if days == 0 || peak < lowest {
				lowest = peak
			}
			highest, days = max(highest, peak), days+1
		}
	}
	return days >= 3 && highest > unevenRatio*lowest
}

// line fits a line through peaks: R², negative for one that falls, and its rise over all of them as a part of the mean.
func line(peaks []float64) (fit, rise float64) {
	n := float64(len(peaks))
	var mean, sxx, sxy, syy float64
	for _, p := range peaks {
		mean += p / n
	}
	for i, p := range peaks {
		x, y := float64(i)-(n-1)/2, p-mean
		sxx, sxy, syy = sxx+x*x, sxy+x*y, syy+y*y
	}
	if sxx == 0 || syy == 0 || mean == 0 {
		return 0, 0
	}
	return math.Copysign(sxy*sxy/(sxx*syy), sxy), sxy / sxx * (n - 1) / mean
}

// peaksAtStart reports whether no hour without a start comes near the peak. The first observed hour counts as one with a start.
func (h *History) peaksAtStart() bool {
	var started, running float64
	ran, first := 0, true
	for _, o := range h.hours {
		switch {
		case o.slots == 0:
			continue
		case first || o.starts > 0:
			started = max(started, float64(o.peak))
		default:
			running, ran = max(running, float64(o.peak)), ran+1
		}
		first = false
	}
	return ran >= 6 && started > startupRatio*running
}

// twoModes reports whether the peaks fall into two parts with nothing between them for a fifth of the peak.
func twoModes(peaks []float64) bool {
	sorted := slices.Clone(peaks)
	slices.Sort(sorted)
	edge := max(len(sorted)/20, 1)
	for i := edge; i <= len(sorted)-edge; i++ {
		if sorted[i]-sorted[i-1] > 0.2*sorted[len(sorted)-1] {
			return true
		}
	}
	return false
}

// flat reports whether all observed hours have the same peak, as those of a process have that takes its memory when it starts.
func (h *History) flat() bool {
	peak, seen := h.Peak(), false
	for _, o := range h.hours {
		if o.slots != 0 && float64(o.peak) < (1-flatRange)*peak {
			return false
		}
		seen = seen || o.slots != 0
	}
	return seen
}

package sizing

import (
	"math"
	"math/bits"
)

// Bounds on a History.
const (
	maxHours   = 24 * 100         // of one workload; older ones are dropped
	maxMiB     = float64(1 << 24) // 16 TiB: more is no memory of a GPU
	maxSeconds = float64(1 << 40)
	slotLength = 300 // seconds; an hour has twelve slots
)

// hour is the observation of an hour.
type hour struct {
	peak   float32 // MiB
	slots  uint16  // in which there was a sample, a bit each: repeated and unsorted samples change nothing
	starts uint16
}

// History holds the observed GPU memory of a workload, the highest container and device of it, hour by hour. The zero
// value is empty. It takes eight bytes an hour, and 100 days at most. Samples may come in any order.
type History struct {
	first int64 // the hour of hours[0], since the epoch of the samples
	hours []hour
}

// Add adds a sample: seconds since any epoch, and MiB. It reports false for a sample that cannot be: no number, negative, more than
// 16 TiB, or 100 days older than the latest.
func (h *History) Add(seconds, mib float64) bool {
	if !(mib >= 0 && mib <= maxMiB) {
		return false
	}
	at := h.at(seconds)
	if at == nil {
		return false
	}
	at.peak = max(at.peak, float32(mib))
	at.slots |= 1 << (int64(seconds) % 3600 / slotLength)
	return true
}

// Start notes that a container of the workload started.
func (h *History) Start(seconds float64) {
	if at := h.at(seconds); at != nil && at.starts < math.MaxUint16 {
		at.starts++
	}
}

// at is the hour of a time; nil: it is out of bounds.
func (h *History) at(seconds float64) *hour {
	if !(seconds >= 0 && seconds <= maxSeconds) {
		return nil
	}
	n := int64(seconds) / 3600
	if len(h.hours) == 0 {
		h.first = n
	}
	if before := h.first - n; before > 0 {
		if before+int64(len(h.hours)) > maxHours {
			return nil
		}
		h.hours = append(make([]hour, before, before+int64(len(h.hours))), h.hours...)
		h.first = n
	}
	i := n - h.first
	if drop := min(i-maxHours+1, int64(len(h.hours))); drop > 0 {
		h.hours = h.hours[drop:]
		h.first, i = h.first+drop, i-drop
		if len(h.hours) == 0 {
			h.first, i = n, 0
		}
	}
	if missing := i + 1 - int64(len(h.hours)); missing > 0 {
		h.hours = append(h.hours, make([]hour, missing)...)
	}
	return &h.hours[i]
}

// fullHour is how many slots have samples in the best observed hour: fewer than twelve if samples are further apart.
func (h *History) fullHour() (most int) {
	for _, o := range h.hours {
		most = max(most, bits.OnesCount16(o.slots))
	}
	return max(most, 1)
}

// Hours is how long the workload was observed, without gaps.
func (h *History) Hours() float64 {
	return float64(slotsOf(h.hours)) / float64(h.fullHour())
}

func slotsOf(hours []hour) (n int) {
	for _, o := range hours {
		n += bits.OnesCount16(o.slots)
	}
	return n
}

// Peak is the highest sample in MiB.
func (h *History) Peak() float64 { return peakOf(h.hours) }

func peakOf(hours []hour) float64 {
	var peak float32
	for _, o := range hours {
		if o.peak > peak { // no NaN, which makes max slow
			peak = o.peak
		}
	}
	return float64(peak)
}

// starts is how often a container of the workload is known to have started.
func (h *History) starts() (n int) {
	for _, o := range h.hours {
		n += int(o.starts)
	}
	return n
}

// cut is the index of the hour before which the workload was observed for so many hours; -1: it was not observed for so long.
func (h *History) cut(observed float64) int {
	full, seen := float64(h.fullHour()), 0
	for i, o := range h.hours {
		seen += bits.OnesCount16(o.slots)
		// samples do not stand at the ends of their slots: half a slot less is as long
		if float64(seen) >= observed*full-0.5 {
			return i + 1
		}
	}
	return -1
}

// Split cuts the history where it has so many observed hours, and returns the peak before the cut, and that of the following hours
// of the clock (0: all). It reports false if there are not so many hours, or if later ones were observed for less than least hours.
func (h *History) Split(observed, following, least float64) (Pair, bool) {
	at := h.cut(observed)
	if at < 0 {
		return Pair{}, false
	}
	later := h.hours[at:]
	if following > 0 && following < float64(len(later)) {
		later = later[:int(math.Ceil(following))]
	}
	slots := slotsOf(later)
	if slots == 0 || float64(slots)/float64(h.fullHour()) < least {
		return Pair{}, false
	}
	return Pair{peakOf(h.hours[:at]), peakOf(later)}, true
}

// observed are the peaks of the hours with samples, in their order.
func (h *History) observed() []float64 {
	peaks := make([]float64, 0, len(h.hours))
	for _, o := range h.hours {
		if o.slots != 0 {
			peaks = append(peaks, float64(o.peak))
		}
	}
	return peaks
}

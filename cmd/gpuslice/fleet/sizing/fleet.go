package sizing

import "cmp"

// Workload is the input of an estimate.
type Workload struct {
	// Group is of workloads that are alike, such as a namespace; it is used if it is large enough.
	Group  string
	Memory *History
	Slice  float64 // that its containers have now, in MiB; 0: none, or unknown
	Device float64 // memory of its GPU in MiB; 0: unknown
	Events Events
	// Engine reports whether an inference engine that takes the memory it is given runs in it.
	Engine bool
}

// given is the memory available to the workload, in MiB; 0: unknown.
func (w *Workload) given() float64 { return cmp.Or(w.Slice, w.device()) }

// device is the memory of the workload's GPU; 0: unknown, or less than was observed and so that of another.
func (w *Workload) device() float64 {
	if w.Memory.Peak() > w.Device {
		return 0
	}
	return w.Device
}

// preallocates reports whether the workload takes all that it is given. If that is unknown, a large flat history may be
// its mark.
func (w *Workload) preallocates() bool {
	peak, given := w.Memory.Peak(), w.given()
	return w.Memory.flat() && (w.Engine || given > 0 && peak >= givenShare*given || given == 0 && peak > largeFlat)
}

// Fleet is the workloads that estimates learn from.
type Fleet struct {
	workloads []*Workload
	coverage  float64
	following float64
	known     map[split]map[string]*Calibration
}

// split is where histories are cut: after so many observed hours, and after so many following hours of the clock.
type split struct{ observed, following float64 }

const everyGroup = ""

// cuts are the observed hours after which histories are cut.
var cuts = []float64{672, 336, 168, 96, 48, 24, 12, minHours}

// minHours is the least history of an estimate, in hours.
const minHours = 6

// NewFleet returns the fleet of workloads for estimates at a coverage between 0 and 1, for so many following hours.
func NewFleet(workloads []*Workload, coverage, following float64) *Fleet {
	return &Fleet{workloads, coverage, following, map[split]map[string]*Calibration{}}
}

// Basis describes the data of an estimate.
type Basis struct {
	Group     string  `json:"group,omitempty"` // of which the workloads are; "": any
	Workloads int     `json:"workloads"`       // that it was learned from
	Hours     float64 `json:"hours"`           // of their history before the cut
	Table     bool    `json:"table,omitempty"` // there are too few: the built-in table
}

// size is the estimate of a peak after so many hours, its basis, and the number of hours for which it holds. ok is
// false if the coverage cannot be had.
func (f *Fleet) size(group string, peak, hours float64) (mib float64, basis Basis, holds float64, ok bool) {
	for following := f.following; following >= min(f.following, minHours); following /= 2 {
		for _, observed := range cuts {
			if observed > hours {
				continue
			}
			at := f.calibrations(split{observed, following})
			for _, g := range []string{group, everyGroup} {
				c := at[g]
				if c == nil {
					continue
				}
				if mib, ok := c.Size(peak, f.coverage); ok {
					return mib, Basis{Group: g, Workloads: c.workloads(), Hours: observed}, following, true
				}
			}
		}
	}
	c := f.calibrations(split{minHours, min(f.following, minHours)})[everyGroup]
	mib, _, ok = c.SizeOrTable(peak, hours, f.coverage)
	return mib, Basis{Workloads: c.workloads(), Table: true}, min(f.following, tableHolds), ok
}

// calibrations are those of a split, by group.
func (f *Fleet) calibrations(at split) map[string]*Calibration {
	if c, known := f.known[at]; known {
		return c
	}
	pairs := map[string][]Pair{everyGroup: nil}
	for _, w := range f.workloads {
		if w.preallocates() {
			continue // it would teach that peaks stay
		}
		if p, ok := w.Memory.Split(at.observed, at.following, at.following*9/10); ok {
			pairs[everyGroup] = append(pairs[everyGroup], p)
			if w.Group != everyGroup {
				pairs[w.Group] = append(pairs[w.Group], p)
			}
		}
	}
	out := map[string]*Calibration{}
	for group, p := range pairs {
		out[group] = Calibrate(p)
	}
	f.known[at] = out
	return out
}

package sizing

import (
	"math"
	"slices"
)

// Events count Events on a workload's containers: warnings near the limit, and terminated processes.
type Events struct {
	NearLimit  int `json:"nearLimit,omitempty"`
	Terminated int `json:"terminated,omitempty"`
}

// Verdict compares an estimate with the slice that a workload has.
type Verdict string

// Verdicts. The last five give no size, or none to compare.
const (
	OverRequested    Verdict = "over-requested"
	Right            Verdict = "right"
	AtRisk           Verdict = "at-risk"
	NoSlice          Verdict = "no-slice" // known that it could be compared with
	NotEnoughHistory Verdict = "not-enough-history"
	TakesWhatIsGiven Verdict = "takes-what-is-given"
	Idle             Verdict = "idle"
	Unknown          Verdict = "unknown" // the samples are not its own, or a coverage that cannot be had
)

// Estimate is the answer for one workload.
type Estimate struct {
	Verdict Verdict
	// Size is in MiB; 0: none is given.
	Size float64
	Peak float64 // MiB
	// Hours is how long the workload was observed, MoreHours how much longer it must be.
	Hours, MoreHours float64
	// HoldsFor is for how many hours from the end of the history the size has its coverage.
	HoldsFor float64
	Basis    Basis
	Marks    []Mark
}

// Estimate estimates one workload of the fleet, or one beside it.
func (f *Fleet) Estimate(w *Workload) (e Estimate) {
	e.Peak, e.Hours = w.Memory.Peak(), w.Memory.Hours()
	if e.Hours == 0 {
		return Estimate{Verdict: NotEnoughHistory, MoreHours: minHours}
	}
	e.Marks = w.Memory.marks(w.given())
	switch {
	case w.Events != (Events{}) && (e.Hours < minHours || w.preallocates()):
		e.Verdict = AtRisk
	case e.Hours < minHours:
		e.Verdict, e.MoreHours = NotEnoughHistory, minHours-e.Hours
	case e.Peak <= DriverContext:
		e.Verdict = Idle
	case w.preallocates():
		e.Verdict = TakesWhatIsGiven
		e.Marks = slices.DeleteFunc(e.Marks, func(m Mark) bool { return m == markLimit })
	case slices.Contains(e.Marks, markLeak):
		e.Verdict = AtRisk
	default:
		f.estimate(w, &e)
	}
	return e
}

// estimate gives the size, and compares it.
func (f *Fleet) estimate(w *Workload, e *Estimate) {
	size, basis, holds, ok := f.size(w.Group, e.Peak, e.Hours)
	if !ok {
		e.Verdict = Unknown
		return
	}
	if device := w.device(); device > 0 {
		size = min(size, device)
	}
	e.Size, e.Basis, e.HoldsFor = math.Ceil(size), basis, holds
	limited, failed := slices.Contains(e.Marks, markLimit), w.Events != (Events{})
	if limited || failed {
		e.Size = max(e.Size, w.given())
	}
	switch {
	case failed || limited && w.Slice > 0:
		e.Verdict = AtRisk
	case w.given() == 0:
		e.Verdict = NoSlice
	case e.Size > w.given():
		e.Verdict = AtRisk
	case e.Size < overShare*w.given():
		e.Verdict = OverRequested
	default:
		e.Verdict = Right
	}
}

// overShare is the part of the slice below which a size is worth a change.
const overShare = 0.9

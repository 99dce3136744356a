package proof

import (
	"cmp"
	"slices"
	"time"
)

// Report is the result of one run on one device.
type Report struct {
	Taken      time.Time `json:"taken"`
	Driver     string    `json:"driver"`              // version; empty: NVML could not be read
	OldDriver  string    `json:"oldDriver,omitempty"` // of an earlier run, where it was another
	Device     string    `json:"device,omitempty"`    // UUID
	TotalBytes int64     `json:"totalBytes"`          // of the device, as the program sees it
	SliceBytes int64     `json:"sliceBytes"`
	Attempts   []Attempt `json:"attempts"`
	Readings   *Readings `json:"readings,omitempty"` // nil: not compared
}

// Attempt is one way that was tried.
type Attempt struct {
	Way Way `json:"way"`
	// Held is the holder of the program; empty: nothing follows from the attempt,
	// for the reason of Detail.
	Held Holder `json:"held,omitempty"`
	// ReachedBytes is the most that the program held.
	ReachedBytes int64 `json:"reachedBytes"`
	// Reaction is the time from the passing of the slice to the program's end, where it was terminated.
	ReactionMilliseconds int64  `json:"reactionMilliseconds,omitempty"`
	Detail               string `json:"detail,omitempty"`
}

// Readings are NVML's answers in the program's own container about a process whose
// PID and memory are known.
type Readings struct {
	PIDs    Reading `json:"pids"`
	Amounts Reading `json:"amounts"`
	Detail  string  `json:"detail,omitempty"`
}

// Reading compares NVML's answer with the truth.
type Reading string

// The comparisons.
const (
	Right   Reading = "right"
	Wrong   Reading = "wrong"
	Missing Reading = "missing"
)

// Proves reports whether each way that the tier promises to stop was tried, and was stopped at least as strongly.
func (r Report) Proves(tier string) bool { return len(r.Lacks(tier)) == 0 }

// Lacks returns the ways that keep the report from proving the tier.
func (r Report) Lacks(tier string) (lacking []Way) {
	for _, w := range Ways() {
		// Ways around MPS can be tried only where MPS is, so only its own tier lacks them.
		if !promises(tier, w) || (w.EvadesMPS() && tier != string(MPS) && !r.tried(w)) {
			continue
		}
		if !r.held(w, rank(tier)) {
			lacking = append(lacking, w)
		}
	}
	return lacking
}

func (r Report) tried(w Way) bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Way == w })
}

// held reports whether every attempt of the way was stopped so strongly, and there was one.
func (r Report) held(w Way, least int) bool {
	for _, a := range r.Attempts {
		if a.Way == w && (a.Held == "" || a.Held == Nothing || a.Held == Unknown || slices.Index(Holders(), a.Held) < least) {
			return false
		}
	}
	return r.tried(w)
}

// Tier is the strongest that the report proves, "none" for none of them.
func (r Report) Tier() string {
	for _, h := range slices.Backward(Holders()) {
		if h != Nothing && h != Unknown && r.Proves(string(h)) {
			return string(h)
		}
	}
	return "none"
}

// Weakest is the weakest holder of the program; empty: at least one attempt is
// inconclusive, or there was none.
func (r Report) Weakest() Holder {
	if len(r.Attempts) == 0 {
		return ""
	}
	weakest := Hardware
	for _, a := range r.Attempts {
		if a.Held == "" {
			return ""
		}
		if slices.Index(Holders(), a.Held) < slices.Index(Holders(), weakest) {
			weakest = a.Held
		}
	}
	return weakest
}

// Merge is the report with the attempts and readings of another run on the same pool.
// The attempts of a later run take the place of earlier ones of the same way.
func (r Report) Merge(later Report) Report {
	out := r
	out.Taken, out.Driver, out.Device, out.TotalBytes, out.SliceBytes =
		later.Taken, later.Driver, later.Device, later.TotalBytes, later.SliceBytes
	if out.OldDriver = cmp.Or(later.OldDriver, r.OldDriver); !r.Taken.IsZero() && r.Driver != later.Driver {
		out.OldDriver = cmp.Or(r.Driver, "unknown")
	}
	out.Attempts = slices.DeleteFunc(slices.Clone(r.Attempts), func(a Attempt) bool { return later.tried(a.Way) })
	out.Attempts = append(out.Attempts, later.Attempts...)
	if later.Readings != nil {
		out.Readings = later.Readings
	}
	return out
}

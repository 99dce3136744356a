package guard

import (
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// latePeriod is how long samples must come in time before the guard reports that
// it enforces again.
const latePeriod = time.Minute

// evaluateLateness reports a sample so late that the time before it is unknown:
// whoever may signal the guard can stop it and let it go on.
func evaluateLateness(s State, in Sample, l limits.Limits) (State, []Event) {
	gap := in.Taken.Sub(s.SampledAt)
	switch {
	case s.SampledAt.IsZero(), in.ByAgent:
	case gap > MaxSampleGap(l):
		before := s.Late
		s.Late, s.LateUntil = limits.ReasonLate+FormatDuration(gap), in.Taken.Add(latePeriod)
		if before == "" {
			return s, []Event{{Kind: NotEnforcing, Reason: s.Late}}
		}
	case s.Late != "" && !in.Taken.Before(s.LateUntil):
		s.Late, s.LateUntil = "", time.Time{}
		return s, []Event{{Kind: Enforcing}}
	}
	return s, nil
}

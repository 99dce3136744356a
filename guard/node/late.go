package node

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// latePeriod is how long samples must come in time before a late one is reported again.
const latePeriod = time.Minute

// Lateness is how late the agent's samples come. That is the node's matter and no
// pod's: none of them can do anything about it. It is safe for concurrent use.
type Lateness struct {
	mu     sync.Mutex
	before time.Time // the sample before
	until  time.Time // until then, another late one is no news
}

// Sampled takes in a sample of pods with these limits. It returns the message to
// report; empty: the sample came in time, or others were already reported as late.
func (l *Lateness) Sampled(taken time.Time, pods []limits.Limits) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := taken.Sub(l.before)
	first := l.before.IsZero()
	l.before = taken
	late := slices.ContainsFunc(pods, func(p limits.Limits) bool { return gap > guard.MaxSampleGap(p) })
	if first || !late {
		return ""
	}
	known := taken.Before(l.until)
	if l.until = taken.Add(latePeriod); known {
		return ""
	}
	return fmt.Sprintf(
		"gpuslice enforced no slice on this node for %s, because its agent took no sample of the devices: see how busy the node's CPUs are, "+
			"and give the agent more with requests.cpu (Helm: agent.resources)", guard.FormatDuration(gap))
}

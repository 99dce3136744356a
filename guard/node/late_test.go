package node

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
)

// TestLateness: a sample is late if it is for one of the pods, and is reported once until all came in time for a minute.
func TestLateness(t *testing.T) {
	t.Parallel()
	often, seldom := limits.Default(), limits.Default()
	seldom.Interval *= 10
	both := []limits.Limits{seldom, often}
	late := guard.MaxSampleGap(often) + time.Second
	var l Lateness
	at := time.Now()
	for _, step := range []struct {
		name     string
		after    time.Duration
		pods     []limits.Limits
		reported bool
	}{
		{"the first", late, both, false},
		{"in time for all", guard.MaxSampleGap(often), both, false},
		{"late, and no pod", late, nil, false},
		{"late for another pod alone", late, []limits.Limits{seldom}, false},
		{"late for one of two", late, both, true},
		{"late again", late, both, false},
		{"late after a minute in time", latePeriod, []limits.Limits{often}, true},
	} {
		at = at.Add(step.after)
		if got := l.Sampled(at, step.pods); (got != "") != step.reported ||
			got != "" && !strings.Contains(got, guard.FormatDuration(step.after)) {
			t.Errorf("%s: %q", step.name, got)
		}
	}
}

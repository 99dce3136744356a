package observe

import (
	"cmp"
	"context"
	"slices"
	"time"
	"unique"

	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// GuardRecord keeps where guards could not read the GPUs, for the plans of pods to come.
type GuardRecord interface {
	// PoolOf is the name of the pool in which a node offers a resource; "": there is none.
	PoolOf(node, resource string) string
	GuardFailures() guardaccess.Failures
	SaveGuardFailures(ctx context.Context, failures guardaccess.Failures) error
}

// guardPeriod is how often reports of guards are saved.
const guardPeriod = 5 * time.Second

// guardOn is the report of a pod's guard on a node. The node's pool is looked up when it is needed: it changes with the
// labels of the node and with policy's declarations.
type guardOn struct {
	node, resource string
	report         guardaccess.Report // without its pool
}

// reportOn returns the report on a node. Guards that read the GPUs, which are nearly all, have theirs in common: whichever came first.
func reportOn(node, resource string, r guardaccess.Report) guardOn {
	if r.Outcome == guardaccess.Reads {
		r.Namespace, r.Started = "", time.Time{}
	}
	return guardOn{node, resource, r}
}

// keepGuards saves reports of guards, until ctx is done.
func (s *session) keepGuards(ctx context.Context) {
	for range ticks.After(ctx, guardPeriod) {
		// While pods wait to be observed, a guard that reads the GPUs may not be known yet.
		if s.options.Guards != nil && s.queue.Len() == 0 {
			s.saveGuards(ctx)
		}
	}
}

func (s *session) saveGuards(ctx context.Context) {
	before := s.options.Guards.GuardFailures()
	after := before.Update(s.guardReports(), time.Now())
	s.gauges.setFailures(after)
	if after.Equal(before) {
		return
	}
	if err := s.options.Guards.SaveGuardFailures(ctx, after); err != nil {
		s.options.Log.Error(err, "cannot save what guards reported")
		return
	}
	s.options.Log.Info("guards reported whether they read the GPUs", "before", before, "failures", after)
}

// guardReports are the reports of all guards, in a stable order. Of guards that read the GPUs there is one for each pool and access:
// more would add nothing.
func (s *session) guardReports() []guardaccess.Report {
	var reports []guardaccess.Report
	read := map[guardaccess.Report]bool{}
	for on := range s.guardsOn() {
		r := on.Value().report
		r.Pool = s.options.Guards.PoolOf(on.Value().node, on.Value().resource)
		if r.Pool == "" || read[r] {
			continue
		}
		read[r] = r.Outcome == guardaccess.Reads
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b guardaccess.Report) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Namespace, b.Namespace),
			a.Started.Compare(b.Started), cmp.Compare(a.Reason, b.Reason))
	})
	return reports
}

// guardsOn are the reports of guards, each once.
func (s *session) guardsOn() map[unique.Handle[guardOn]]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[unique.Handle[guardOn]]bool{}
	for _, on := range s.guarding {
		all[on] = true
	}
	return all
}

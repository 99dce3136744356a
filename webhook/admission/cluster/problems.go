package cluster

import (
	"github.com/go-logr/logr"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// problemLog counts the sources of a snapshot and logs each problem once: documents that cannot be used, and claims or
// limits on which several of them conflict.
type problemLog struct {
	metrics *metrics.Metrics
	log     logr.Logger
	logged  map[string]string // by policy, or by the conflict
}

// report counts and logs the new problems of a snapshot.
func (l *problemLog) report(s *Snapshot) {
	conflicts, broken, now := s.conflicts(), map[string]bool{}, map[string]string{}
	for _, d := range s.documents {
		if d.err == nil {
			continue
		}
		lastGood := d.policy != nil
		broken[d.name], now[d.name] = lastGood, d.err.Error()
		if l.logged[d.name] != d.err.Error() {
			l.log.Error(d.err, "policy is broken", "policy", d.name, "lastGood", lastGood)
		}
	}
	for _, err := range conflicts {
		now[err.Error()] = err.Error()
		if l.logged[err.Error()] == "" {
			l.log.Error(err, "policies contradict each other")
		}
	}
	for name := range l.logged {
		if now[name] == "" {
			l.log.Info("no longer broken", "policy", name)
		}
	}
	l.logged = now
	l.metrics.SetSnapshot(metrics.Snapshot{Broken: broken, Conflicts: len(conflicts), Pools: s.pools})
	l.log.V(1).Info("snapshot", "policies", len(s.documents), "broken", len(broken), "conflicts", len(conflicts), "pools", len(s.pools))
}

// reportTenants counts tenants' own documents, and logs those that changed and cannot be used.
func (l *problemLog) reportTenants(all map[string]*tenant, changed []*tenant) {
	for _, t := range changed {
		if t.Policy == nil {
			l.log.Info("a tenant's own policy cannot be used", "policy", t.Name, "reason", shorten.Line(t.Problems[0].Error(), review.MaxMessage))
		}
	}
	usable := 0
	for _, t := range all {
		if t.Policy != nil {
			usable++
		}
	}
	l.metrics.SetTenants(usable, len(all)-usable)
}

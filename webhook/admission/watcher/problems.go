package watcher

import (
	"errors"

	"github.com/go-logr/logr"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
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
func (l *problemLog) report(s cluster.StateReport) {
	broken, now := map[string]bool{}, map[string]string{}
	for _, p := range s.Policies {
		if p.Error == "" {
			continue
		}
		broken[p.Name], now[p.Name] = p.LastGood, p.Error
		if l.logged[p.Name] != p.Error {
			l.log.Error(errors.New(p.Error), "policy is broken", "policy", p.Name, "lastGood", p.LastGood)
		}
	}
	for _, conflict := range s.Conflicts {
		now[conflict] = conflict
		if l.logged[conflict] == "" {
			l.log.Error(errors.New(conflict), "policies contradict each other")
		}
	}
	for name := range l.logged {
		if now[name] == "" {
			l.log.Info("no longer broken", "policy", name)
		}
	}
	l.logged = now
	l.metrics.SetSnapshot(metrics.Snapshot{Broken: broken, Conflicts: len(s.Conflicts), Pools: s.Pools})
	l.log.V(1).Info("snapshot", "policies", len(s.Policies), "broken", len(broken), "conflicts", len(s.Conflicts), "pools", len(s.Pools))
}

// reportTenants counts tenants' own documents, and logs those that changed and cannot be used.
func (l *problemLog) reportTenants(all map[string]*cluster.Tenant, changed []*cluster.Tenant) {
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

package observe

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// GuardRecord keeps where guards could not read the GPUs, for the plans of pods to come.
type GuardRecord interface {
	// PoolOf is the name of the pool in which a node offers a resource; "": there is none.
	PoolOf(node, resource string) string
	GuardFailures() guardaccess.Failures
	SaveGuardFailures(ctx context.Context, failures guardaccess.Failures) error
}

const (
	// readsAfter is how long a guard runs without a word before it counts as one that reads the GPUs. One that does not is heard
	// of after some ten seconds and two periods of its liveness probe.
	readsAfter = 2 * time.Minute
	// guardPeriod is how often what guards reported is saved.
	guardPeriod = 5 * time.Second
)

// guardReport is what the guard of a pod came to, by its notices. wait is set where that is known only later.
func guardReport(pod *corev1.Pod, promise *promise.Promise, notices []Notice, now time.Time) (r guardaccess.Report, wait time.Duration) {
	e := &evaluation{pod: pod, promise: promise}
	s := e.guardStatus()
	if promise.Guard == nil || e.finished() || !isGuarding(s) {
		return r, 0
	}
	runtimeClass := ""
	if pod.Spec.RuntimeClassName != nil {
		runtimeClass = *pod.Spec.RuntimeClassName
	}
	r = guardaccess.Report{Access: promise.Guard.Access(runtimeClass), Namespace: pod.Namespace, Started: s.State.Running.StartedAt.Time}
	var resumed time.Time
	for _, n := range notices {
		switch {
		case n.Kind == NoticeEnforcing:
			resumed = n.At
		case n.Kind == NoticeNotEnforcing && strings.Contains(n.Text, limits.ReasonLate):
			return guardaccess.Report{}, 0
		case n.Kind == NoticeNotEnforcing && resumed.After(n.At):
			r.Outcome = guardaccess.Resumed
		case n.Kind == NoticeNotEnforcing:
			r.Outcome, r.Reason = guardaccess.Fails, strings.TrimLeft(strings.TrimPrefix(n.Text, beginsNotEnforcing), ": ")
		}
	}
	wait = readsAfter - now.Sub(r.Started)
	switch {
	case r.Outcome != "":
		wait = 0
	case wait <= 0:
		r.Outcome = guardaccess.Reads
	}
	return r, wait
}

// recordGuard notes what the guard of a pod came to.
func (s *session) recordGuard(key string, pod *corev1.Pod, promise *promise.Promise, notices []Notice) {
	if s.options.Guards == nil {
		return
	}
	r, wait := guardReport(pod, promise, notices, time.Now())
	if wait > 0 {
		s.queue.AddAfter(key, min(wait, readsAfter))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.guarding, key); r.Outcome != "" {
		s.guarding[key] = unique.Make(reportOn(pod.Spec.NodeName, promise.Guard.Resource, r))
	}
}

// guardOn is what the guard of a pod reported on a node. The node's pool is looked up when it is needed: it changes with the labels of
// the node and with what policy declares.
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

// keepGuards saves what guards reported, until ctx ends.
func (s *session) keepGuards(ctx context.Context) {
	tick := time.NewTicker(guardPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// While pods wait to be observed, a guard that reads the GPUs may not be known yet.
		if s.options.Guards == nil || s.queue.Len() > 0 {
			continue
		}
		s.saveGuards(ctx)
	}
}

func (s *session) saveGuards(ctx context.Context) {
	before := s.options.Guards.GuardFailures()
	after := before.Update(s.guardReports(), time.Now())
	s.guards.set(after)
	if after.Equal(before) {
		return
	}
	if err := s.options.Guards.SaveGuardFailures(ctx, after); err != nil {
		s.options.Log.Error(err, "cannot save what guards reported")
		return
	}
	s.options.Log.Info("guards reported whether they read the GPUs", "before", before, "failures", after)
}

// guardReports are the reports of all guards, in a stable order. Of those that read the GPUs one for each pool and access tells as
// much as all do.
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
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Namespace, b.Namespace), a.Started.Compare(b.Started), cmp.Compare(a.Reason, b.Reason))
	})
	return reports
}

// guardsOn are what guards reported, each once.
func (s *session) guardsOn() map[unique.Handle[guardOn]]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[unique.Handle[guardOn]]bool{}
	for _, on := range s.guarding {
		all[on] = true
	}
	return all
}

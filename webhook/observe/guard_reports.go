package observe

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

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
	if r.Outcome != "" {
		r.Pool = s.options.Guards.PoolOf(pod.Spec.NodeName, promise.Guard.Resource)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.guarding, key); r.Pool != "" {
		s.guarding[key] = r
	}
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

// guardReports are the reports of all guards, in a stable order. Of those that read the GPUs, which are nearly all, one for each pool
// and access tells as much as all do.
func (s *session) guardReports() []guardaccess.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reports []guardaccess.Report
	read := map[[2]string]bool{}
	for _, r := range s.guarding {
		if at := [2]string{r.Pool, r.Access}; r.Outcome == guardaccess.Reads {
			if read[at] {
				continue
			}
			read[at] = true
			r.Namespace, r.Started = "", time.Time{} // whichever came first
		}
		reports = append(reports, r)
	}
	slices.SortFunc(reports, func(a, b guardaccess.Report) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Namespace, b.Namespace), a.Started.Compare(b.Started), cmp.Compare(a.Reason, b.Reason))
	})
	return reports
}

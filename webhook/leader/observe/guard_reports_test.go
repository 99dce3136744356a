package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

const (
	unreadable = "gpuslice cannot enforce this pod's slice: initialise NVML: library not found"
	again      = "gpuslice enforces this pod's slice again"
)

func TestGuardReport(t *testing.T) {
	for name, tt := range map[string]struct {
		plan    string // "": time-slicing
		edit    func(*subject)
		after   time.Duration // of the guard's start
		outcome guardaccess.Outcome
		access  string
		reason  string
		wait    time.Duration
	}{
		"a guard that has just started is not judged":  {after: 30 * time.Second, access: "env", wait: 90 * time.Second},
		"a guard without a word for two minutes reads": {after: readsAfter, outcome: guardaccess.Reads, access: "env"},
		"a guard that reads nothing fails at once": {after: time.Second, edit: func(s *subject) { s.hear(time.Second, unreadable) },
			outcome: guardaccess.Fails, access: "env", reason: "initialise NVML: library not found"},
		"a guard that reads nothing fails for its life": {after: time.Hour, edit: func(s *subject) { s.hear(time.Second, unreadable) },
			outcome: guardaccess.Fails, access: "env", reason: "initialise NVML: library not found"},
		"a guard that cannot trust one device fails": {after: time.Hour, edit: func(s *subject) { s.hear(time.Second, notEnforcing) },
			outcome: guardaccess.Fails, access: "env", reason: "on GPU-1: the device lists pid 7, which is no process of this pod"},
		"a guard that enforces again resumes, and no more": {after: time.Hour,
			edit: func(s *subject) { s.hear(time.Second, unreadable); s.hear(time.Minute, again) }, outcome: guardaccess.Resumed, access: "env"},
		"a guard that fails after it enforced again fails": {after: time.Hour,
			edit:    func(s *subject) { s.hear(time.Second, again); s.hear(time.Minute, unreadable) },
			outcome: guardaccess.Fails, access: "env", reason: "initialise NVML: library not found"},
		"a guard that was late says nothing of the devices": {after: time.Hour, edit: func(s *subject) {
			s.hear(time.Second, "gpuslice cannot enforce this pod's slice: "+limits.ReasonLate+"9s")
		}},
		"a guard that terminated a process reads": {after: time.Hour,
			edit: func(s *subject) { s.hear(time.Second, "gpuslice terminated python (pid 7)") }, outcome: guardaccess.Reads, access: "env"},
		"the runtime class is part of the access": {after: time.Hour, edit: func(s *subject) { s.pod.Spec.RuntimeClassName = new("nvidia") },
			outcome: guardaccess.Reads, access: "env, runtime class nvidia"},
		"a guard that does not run": {after: time.Hour,
			edit: func(s *subject) { s.guard().State = waiting("CrashLoopBackOff"); s.hear(time.Second, unreadable) }},
		"a guard that has not sampled": {after: time.Hour, edit: func(s *subject) { s.guard().Started = new(false) }},
		"a pod that has ended":         {after: time.Hour, edit: func(s *subject) { s.pod.Status.Phase = "Failed" }},
		"a pod without a guard":        {plan: "unguarded", after: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.plan == "" {
				tt.plan = "time-slicing"
			}
			s := started(t, tt.plan)
			if tt.edit != nil {
				tt.edit(s)
			}
			r, wait := guardReport(s.pod, s.promise, s.observe().Notices, noon.Add(tt.after))
			if r.Outcome != tt.outcome || r.Access != tt.access || r.Reason != tt.reason ||
				wait > 0 != (tt.wait > 0) || tt.wait > 0 && wait != tt.wait {
				t.Errorf("reported %+v, judged again after %s", r, wait)
			}
			if r.Access != "" && (r.Namespace != "team-a" || !r.Started.Equal(noon)) {
				t.Errorf("reported %+v", r)
			}
		})
	}
}

// guardRecord is a cluster of one pool.
type guardRecord struct {
	mu       sync.Mutex
	failures guardaccess.Failures
	saves    int
	broken   bool
	moved    string // the pool of now
}

func (g *guardRecord) PoolOf(node, resource string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if node == "l4-1" && resource == "nvidia.com/gpu.shared" {
		return cmp.Or(g.moved, "l4")
	}
	return ""
}

func (g *guardRecord) GuardFailures() guardaccess.Failures {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures
}

func (g *guardRecord) SaveGuardFailures(_ context.Context, failures guardaccess.Failures) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.saves++; g.broken {
		return errors.New("the API server denies it")
	}
	g.failures = failures
	return nil
}

// namespaces are those whose guards failed on the pool.
func (g *guardRecord) namespaces() (out []string) {
	for _, f := range g.GuardFailures() {
		for name := range f.Namespaces {
			out = append(out, f.Pool+" "+f.Access+" "+name)
		}
	}
	slices.Sort(out)
	return out
}

func TestGuardsAreRecorded(t *testing.T) {
	t.Run("a guard that fails, until one reads", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			began := time.Now()
			s.guard().State = running(began)
			l.status(s)
			l.guards = &guardRecord{}
			r := l.replica("a")
			defer r.stop()
			if got := l.guards.namespaces(); len(got) > 0 {
				t.Errorf("before it reported: %q", got)
			}
			l.kubelet(s, time.Now(), unreadable)
			l.pass(guardPeriod)
			if got := l.guards.namespaces(); len(got) != 1 || got[0] != "l4 env team-a" {
				t.Errorf("recorded %q", got)
			}
			l.pass(time.Hour)
			if l.guards.saves != 1 {
				t.Errorf("saved %d times", l.guards.saves)
			}
			if got := r.gauge(t, "gpuslice_guard_failing_namespaces"); got != 1 {
				t.Errorf("the metric is %v", got)
			}
			s.guard().State, s.guard().RestartCount = running(time.Now()), 1
			l.status(s)
			l.pass(time.Minute)
			if got := l.guards.namespaces(); len(got) != 1 {
				t.Errorf("a guard that has just started ended it: %q", got)
			}
			l.pass(readsAfter)
			if got := l.guards.namespaces(); len(got) > 0 {
				t.Errorf("a guard that reads did not end it: %q", got)
			}
			if got := r.gauge(t, "gpuslice_guard_failing_namespaces"); got != -1 {
				t.Errorf("the metric is %v", got)
			}
		}, s.pod, s.node)
	})
	t.Run("a pool that is declared anew, without a change of the pod", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			s.guard().State = running(time.Now())
			l.status(s)
			l.guards = &guardRecord{}
			defer l.replica("a").stop()
			l.kubelet(s, time.Now(), unreadable)
			l.pass(guardPeriod)
			l.guards.mu.Lock()
			l.guards.moved = "mine"
			l.guards.mu.Unlock()
			l.pass(guardPeriod)
			if got := l.guards.namespaces(); !slices.Contains(got, "mine env team-a") {
				t.Errorf("recorded %q", got)
			}
		}, s.pod, s.node)
	})
	t.Run("a write that fails is tried again", func(t *testing.T) {
		s := owned(t)
		inLab(t, func(l *lab) {
			s.guard().State = running(time.Now())
			l.status(s)
			l.guards = &guardRecord{broken: true}
			defer l.replica("a").stop()
			l.kubelet(s, time.Now(), unreadable)
			l.pass(3 * guardPeriod)
			l.guards.mu.Lock()
			if l.guards.saves < 2 {
				t.Errorf("tried %d times", l.guards.saves)
			}
			l.guards.broken = false
			l.guards.mu.Unlock()
			l.pass(2 * guardPeriod)
			if got := l.guards.namespaces(); len(got) != 1 {
				t.Errorf("recorded %q", got)
			}
		}, s.pod, s.node)
	})
}

// poolsByNode is a cluster whose pools have the names of their only nodes.
type poolsByNode struct{ guardRecord }

func (*poolsByNode) PoolOf(node, _ string) string { return node }

// TestGuardReports: the reports that are left out change nothing, and a hundred guards that read make one report.
func TestGuardReports(t *testing.T) {
	t.Parallel()
	now := noon.Add(time.Hour)
	one := func(outcome guardaccess.Outcome, pool, namespace string, minute int) guardaccess.Report {
		return guardaccess.Report{Pool: pool, Access: "env", Namespace: namespace,
			Started: noon.Add(time.Duration(minute) * time.Minute), Outcome: outcome}
	}
	s := &session{Controller: &Controller{options: Options{Guards: &poolsByNode{}}}, guarding: map[string]unique.Handle[guardOn]{}}
	var all []guardaccess.Report
	add := func(pod string, r guardaccess.Report) {
		all = append(all, r)
		node := r.Pool
		r.Pool = ""
		s.guarding[pod] = unique.Make(reportOn(node, "nvidia.com/gpu", r))
	}
	for k := range 100 {
		add(fmt.Sprint("reads-", k), one(guardaccess.Reads, "l4", fmt.Sprint("team-", k), k%7))
	}
	add("in no pool", one(guardaccess.Fails, "", "a", 1))
	all = all[:len(all)-1]
	for _, namespace := range []string{"a", "b"} {
		for _, pool := range []string{"l4", "h100"} {
			add("fails-"+pool+namespace, one(guardaccess.Fails, pool, namespace, 1))
		}
	}
	add("resumes", one(guardaccess.Resumed, "a100", "a", 1))
	var before guardaccess.Failures
	want := before.Update(all, now)
	if got := s.guardReports(); len(got) != 6 || !before.Update(got, now).Equal(want) || len(want) != 1 {
		t.Errorf("%d reports make %v, all make %v", len(got), before.Update(got, now), want)
	}
}

func TestDescribeGuardEnd(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`{"sampledAt":4792795882681}`:                            "exit code 137",
		"gpuslice guards this pod\n" + `{"sampledAt":47}` + "\n": "exit code 137: gpuslice guards this pod",
		"panic: {1}": "exit code 137: panic: {1}",
	} {
		if got := describeGuardEnd(&corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", Message: message}); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

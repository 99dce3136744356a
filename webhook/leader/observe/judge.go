package observe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// facts are the facts about one pod when it is observed.
type facts struct {
	key     string
	now     time.Time
	pod     *corev1.Pod
	promise *promise.Promise
	before  Observation // the last one
	at      Place
	guard   []*corev1.Event // of kubelets, about the guard, or made up
	agent   []agentReport
}

// judgment is the result of the facts about a pod.
type judgment struct {
	observation Observation
	guard       guardaccess.Report // the result of its guard; without an outcome: none yet
	wait        time.Duration      // until that is known; 0: it is, or never will be
	sentences   []sentence
	annotations map[string]string // to be changed
}

// sentence is the content of one Event, reported once.
type sentence struct {
	reason, text string
	at           time.Time
	ownersOnly   bool // the pod has the Event
}

// readsAfter is how long a guard runs without a notice before it counts as one that reads the GPUs. One that cannot read them reports
// so after some ten seconds and two periods of its liveness probe.
const readsAfter = 2 * time.Minute

// judge compares the facts about a pod with its promise. It changes nothing.
func judge(f *facts) judgment {
	notices := slices.Clone(f.before.Notices)
	for _, e := range f.guard {
		notices = append(notices, NoticesOf(e)...)
	}
	o := Observe(f.pod, f.at, f.promise, notices)
	o.Terminations = terminationsOf(f)
	j := judgment{observation: o, sentences: sentencesOf(f, o.Terminations), annotations: annotationsOf(f.pod, f.promise, o)}
	j.guard, j.wait = guardReport(f.pod, f.promise, o.Notices, f.now)
	return j
}

// sentencesOf returns the content of a pod's Events. An agent may write no Events on owners: its reports on the pod go
// to them.
func sentencesOf(f *facts, terminations []Termination) (out []sentence) {
	if f.promise.Guard != nil && f.promise.Guard.Agent {
		for _, r := range f.agent {
			out = append(out, sentence{r.reason, r.text, r.at, true})
		}
		return out
	}
	out = initSentences(f.pod, f.promise)
	for _, t := range terminations {
		out = append(out, sentence{ReasonTerminated, t.Text, t.At, false})
	}
	return out
}

// ReasonNeedsPID1 is the reason of the Events about a container whose init exited because it is not PID 1.
const ReasonNeedsPID1 = "GPUSliceNeedsPID1"

// initSentences returns a sentence about each container whose init exited because it is not PID 1.
func initSentences(pod *corev1.Pod, promised *promise.Promise) (out []sentence) {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if end := lastTermination(status); neededPID1(promised, end) {
			text := fmt.Sprintf("container %q ended with exit code %d, %s", status.Name, end.ExitCode, pid1Remedy)
			out = append(out, sentence{ReasonNeedsPID1, text, end.FinishedAt.Time, false})
		}
	}
	return out
}

// annotationsOf returns the annotations that should change: the observed tiers, and the summary by the present
// enforcement of the slice. A pending pod needs none, and a pod that is being deleted is not written any more.
func annotationsOf(pod *corev1.Pod, promised *promise.Promise, o Observation) map[string]string {
	text, written := pod.Annotations[api.AnnotationObserved]
	changed := map[string]string{}
	if pod.DeletionTimestamp != nil || !written && o.State == Pending {
		return changed
	}
	if now := o.Encode(); now != text {
		changed[api.AnnotationObserved] = now
	}
	if now := promised.Summary(o.Tier); o.Tier != "" && now != "" && now != pod.Annotations[api.AnnotationSummary] {
		changed[api.AnnotationSummary] = now
	}
	return changed
}

// guardReport is the result of a pod's guard, by its notices. wait is set if that is known only later.
func guardReport(pod *corev1.Pod, promised *promise.Promise, notices []Notice, now time.Time) (r guardaccess.Report, wait time.Duration) {
	e := &evaluation{pod: pod, promise: promised}
	s := e.guardStatus()
	if promised.Guard == nil || e.finished() || !isGuarding(s) {
		return r, 0
	}
	runtimeClass := ""
	if pod.Spec.RuntimeClassName != nil {
		runtimeClass = *pod.Spec.RuntimeClassName
	}
	r = guardaccess.Report{Access: policies.AccessOf(promised.Guard, runtimeClass),
		Namespace: pod.Namespace, Started: s.State.Running.StartedAt.Time}
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

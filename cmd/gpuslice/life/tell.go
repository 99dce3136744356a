package life

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/observe"
)

// Tell says what the facts come to. It changes nothing.
func Tell(f *Facts) Life {
	l := Life{
		Kind: f.Kind, Namespace: f.Namespace, Name: f.Name, State: Missing,
		Why: []string{}, Nodes: []Node{}, Told: told(f.Events), Pods: []Short{}, Notes: append([]string{}, f.Notes...),
	}
	switch {
	case f.Kind != "pod":
		l.workload(f)
	case f.Pod == nil:
		l.missing(f)
	default:
		l.pod(f)
	}
	return l
}

// missing says where to look for a pod that is not there.
func (l *Life) missing(f *Facts) {
	l.why("there is no %s %s in namespace %s: it was refused, or it is gone", f.Kind, f.Name, f.Namespace)
	l.note("a pod that is refused leaves nothing but the answer to who made it: gpuslice explain deployment/NAME -n %s (or job, statefulset, ...) tells what its owner was answered", f.Namespace)
}

// workload tells of a workload by its pods, and of what it was answered.
func (l *Life) workload(f *Facts) {
	if !f.Found {
		l.why("there is no %s %s in namespace %s", f.Kind, f.Name, f.Namespace)
		return
	}
	l.State = Waiting
	for i := range f.Pods {
		p := &f.Pods[i]
		one := Short{Name: p.Name, State: stateOf(p)}
		if promise, err := promiseOn(p); err == nil && promise != nil {
			one.Slice, one.Holds = slicesOf(promise), string(promise.Planned.Tier)+" planned"
		}
		if o := observed(p); o != nil && o.Tier != "" {
			one.Holds = string(o.Tier)
		}
		if one.State == Running {
			l.State = Running
		}
		l.Pods = append(l.Pods, one)
	}
	for _, e := range l.Told {
		if e.Reason == "FailedCreate" && strings.Contains(e.Text, api.Domain) {
			l.refused = len(f.Pods) == 0
			l.why("its pods are refused: %s", e.Text)
		}
	}
	l.Why = lastOf(l.Why)
}

// lastOf keeps the newest of many answers that say the same.
func lastOf(why []string) []string {
	seen := map[string]bool{}
	out := []string{}
	for i := len(why) - 1; i >= 0; i-- {
		if !seen[why[i]] {
			seen[why[i]] = true
			out = append(out, why[i])
		}
	}
	return out
}

// pod tells of a pod.
func (l *Life) pod(f *Facts) {
	p := f.Pod
	l.State, l.Node, l.Observed = stateOf(p), p.Spec.NodeName, observed(p)
	promise, err := promiseOn(p)
	switch {
	case err != nil:
		l.note("what it was given cannot be read: %v", err)
	case promise == nil:
		l.note("gpuslice wrote nothing on it; what it would be given today: kubectl get pod %s -n %s -o yaml | gpuslice explain -f -", p.Name, p.Namespace)
	default:
		l.Asked, l.Given = &promise.Request, given(promise)
	}
	switch l.State {
	case Waiting:
		l.waiting(f, promise)
	case Ended:
		if p.Status.Reason != "" {
			l.why("%s: %s", p.Status.Reason, p.Status.Message)
		}
	}
	l.ends(f)
	if l.Observed != nil {
		l.Why = append(l.Why, l.Observed.Reasons...)
	}
}

// waiting says why a pod does not run.
func (l *Life) waiting(f *Facts, promise *promise.Promise) {
	p := f.Pod
	for _, gate := range p.Spec.SchedulingGates {
		l.why("it is held by the scheduling gate %s", gate.Name)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
			l.why("the scheduler says: %s", c.Message)
		}
	}
	for _, s := range statuses(p) {
		if w := s.State.Waiting; w != nil && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			l.why("%s waits (%s): %s", s.Name, w.Reason, w.Message)
		}
	}
	if p.Spec.NodeName != "" || promise == nil {
		return
	}
	l.Nodes = room(f, promise)
	switch free := fitting(l.Nodes); {
	case len(f.Nodes) == 0:
	case len(l.Nodes) == 0:
		l.note("no node offers %s now: a node has to come, or the device plugin to start again", promise.Containers[0].Resource)
	case free == 0:
		l.note("no node that it can go to has a free replica: it waits until another pod ends")
	}
}

func statuses(p *corev1.Pod) []corev1.ContainerStatus {
	return append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...)
}

func stateOf(p *corev1.Pod) State {
	switch p.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return Ended
	case corev1.PodRunning:
		return Running
	}
	return Waiting
}

// promiseOn is what was written on a pod; nil: nothing.
func promiseOn(p *corev1.Pod) (*promise.Promise, error) {
	text := p.Annotations[api.AnnotationPromise]
	if text == "" {
		return nil, nil
	}
	return promise.Decode(text)
}

func observed(p *corev1.Pod) *observe.Observation {
	o, err := observe.DecodeObservation(p.Annotations[api.AnnotationObserved])
	if err != nil {
		return nil
	}
	return &o
}

func given(p *promise.Promise) *Given {
	return &Given{Policy: p.Policy, Strategy: p.Strategy, Pools: p.Pools, Containers: p.Containers, Charge: p.Charge, Planned: p.Planned, Guard: p.Guard != nil}
}

// slicesOf lists the sizes that a pod was given.
func slicesOf(p *promise.Promise) string {
	var out []string
	for _, c := range p.Containers {
		out = append(out, c.Slice.Human())
	}
	return strings.Join(out, ", ")
}

func (l *Life) why(format string, args ...any) { l.Why = append(l.Why, fmt.Sprintf(format, args...)) }
func (l *Life) note(format string, args ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf(format, args...))
}

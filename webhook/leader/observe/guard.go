package observe

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/api"
)

// evaluateCheck evaluates gpuslice-check. While it fails, the kubelet starts no container with a slice, so that no planned
// tier is observed.
func (e *evaluation) evaluateCheck() {
	if e.promise.Guard == nil {
		return
	}
	s := e.status(limits.CheckContainer)
	end := lastTermination(s)
	if end == nil || end.ExitCode == 0 || s.State.Running != nil {
		return
	}
	for _, tier := range api.Tiers() {
		e.lost[tier] = true
	}
	e.addReason("planned: a node that passes %s; the check on %s failed with %s; no container with a slice has started: repair the node, or create the pod again elsewhere",
		limits.CheckContainer, e.nodeName(), describeTermination(end))
}

// evaluateGuard evaluates whether the planned guard exists, has its image and is ready. It is missed only while a container
// with a slice runs: the kubelet terminates it after the pod's own containers.
func (e *evaluation) evaluateGuard() {
	if !e.plans(api.TierGuard) {
		return
	}
	if e.byAgent() {
		e.evaluateAgent()
		return
	}
	spec := e.spec(limits.GuardContainer)
	switch {
	case spec == nil || e.promise.Guard == nil:
		e.lose(api.TierGuard, "planned: %s; the pod has no such container: create it again", limits.GuardContainer)
		return
	case spec.Image != e.promise.Guard.Image:
		e.lose(api.TierGuard, "planned: %s from image %s; its image was changed to %s: create the pod again",
			limits.GuardContainer, e.promise.Guard.Image, shorten.Line(spec.Image, maxQuote))
	}
	if s := e.guardStatus(); !isGuarding(s) && e.running() {
		e.lose(api.TierGuard, "planned: %s beside the containers with a slice; they run, and the guard %s: the kubelet restarts it; if it does not come back, create the pod again",
			limits.GuardContainer, describeAbsence(s))
	}
}

// byAgent reports whether the node's agent is the guard.
func (e *evaluation) byAgent() bool { return e.promise.Guard != nil && e.promise.Guard.Agent }

// evaluateAgent evaluates whether the agent of the node enforces. It is missed only while a container with a slice runs.
func (e *evaluation) evaluateAgent() {
	switch {
	case !e.running():
	case !e.at.Agent:
		e.lose(api.TierGuard, "planned: the agent of %s, which terminates what exceeds its slice; its Lease was not renewed for %s: see the node's pod of the DaemonSet gpuslice-agent",
			e.nodeName(), lease.Duration)
	case e.at.NotEnforced != "":
		e.lose(api.TierGuard, "planned: the agent of %s, which terminates what exceeds its slice; it reports: %s; repair the device, or create the pod again elsewhere",
			e.nodeName(), shorten.Line(e.at.NotEnforced, maxQuote))
	}
}

// describeAbsence describes why the guard is not ready.
func describeAbsence(s *corev1.ContainerStatus) string {
	switch {
	case s == nil:
		return "was never started"
	case s.State.Running != nil:
		return "has not sampled the devices yet" + describeRestart(s)
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		return fmt.Sprintf("waits (%s)", shorten.Line(s.State.Waiting.Reason, maxQuote)) + describeRestart(s)
	}
	return "does not run" + describeRestart(s)
}

func describeRestart(s *corev1.ContainerStatus) string {
	if end := lastTermination(s); end != nil {
		return fmt.Sprintf(" after it ended with %s", describeGuardEnd(end))
	}
	return ""
}

// current returns the notices of the guard's current run. Notices of an earlier run do not count, whether or not their
// Events still exist.
func (e *evaluation) current(notices []Notice) []Notice {
	var since time.Time
	if s := e.guardStatus(); s != nil && s.State.Running != nil {
		since = s.State.Running.StartedAt.Time
	}
	var out []Notice
	for _, n := range latest(notices) {
		if !n.At.Before(since) && len(out) < maxNotices {
			n.Text = shorten.Line(n.Text, maxQuote)
			out = append(out, n)
		}
	}
	return out
}

// evaluateNotices compares the guard's notices with the plan.
func (e *evaluation) evaluateNotices() {
	enforcing := time.Time{}
	for _, n := range e.notices {
		if n.Kind == NoticeEnforcing {
			enforcing = n.At
		}
	}
	for _, n := range e.notices {
		const reported = "planned: a guard that terminates what exceeds its slice; at %s it reported: %s; "
		at := n.At.UTC().Format(time.RFC3339)
		switch n.Kind {
		case NoticeNotEnforcing:
			remedy := "see the node's driver and the guard's log"
			if enforcing.After(n.At) {
				// A guard that exited to be restarted would make the pod unready, and LeaderWorkerSet would delete the pods of its group.
				remedy = fmt.Sprintf("an Event of %s reports that it enforces again, but others than the kubelet can write Events, "+
					"so this stays while the guard runs; recreate the pod to clear it", enforcing.UTC().Format(time.RFC3339))
			}
			e.lose(api.TierGuard, reported+"%s", at, n.Text, remedy)
		case NoticeNotTerminated, NoticeNotTerminable:
			e.lose(api.TierGuard, reported+"terminate the process yourself, or delete the pod", at, n.Text)
		case NoticeUnmanaged:
			e.lose(api.TierGuard, reported+"give the container a slice, or hide the devices from it", at, n.Text)
		}
	}
}

// describeGuardEnd is describeTermination without the records that guard and probes keep in the guard's termination
// log, after the text for people.
func describeGuardEnd(end *corev1.ContainerStateTerminated) string {
	own := *end
	text, _, _ := strings.Cut("\n"+end.Message, "\n{")
	own.Message = strings.TrimSpace(text)
	return describeTermination(&own)
}

// guardFacts returns the state of the guard's container; nil if the pod has none.
func (e *evaluation) guardFacts() *Guard {
	s := e.guardStatus()
	if s == nil {
		return nil
	}
	g := &Guard{Restarts: s.RestartCount}
	if end := lastTermination(s); end != nil && !e.finished() {
		g.Ended = describeGuardEnd(end)
	}
	return g
}

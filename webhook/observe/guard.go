package observe

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies"
)

// judgeCheck asks what gpuslice-check said. While it fails, the kubelet starts no container with a slice: nothing that
// was planned is seen to hold there.
func (j *evaluation) evaluateCheck() {
	if j.promise.Guard == nil {
		return
	}
	s := j.status(limits.CheckContainer)
	end := lastTermination(s)
	if end == nil || end.ExitCode == 0 || s.State.Running != nil {
		return
	}
	for _, tier := range policies.Tiers() {
		j.lost[tier] = true
	}
	j.addReason("planned: a node that passes %s; the check on %s failed with %s; no container with a slice has started: mend the node, or create the pod again elsewhere",
		limits.CheckContainer, j.nodeName(), describeTermination(end))
}

// judgeGuard asks whether the guard that was planned is there, is the one that was planned, and guards. It is missed
// only while there is something to guard: the kubelet ends it after the pod's own containers.
func (j *evaluation) evaluateGuard() {
	if !j.plans(policies.TierGuard) {
		return
	}
	spec := j.spec(limits.GuardContainer)
	switch {
	case spec == nil || j.promise.Guard == nil:
		j.lose(policies.TierGuard, "planned: %s; the pod has no such container: create it again", limits.GuardContainer)
		return
	case spec.Image != j.promise.Guard.Image:
		j.lose(policies.TierGuard, "planned: %s from image %s; its image was changed to %s: create the pod again",
			limits.GuardContainer, j.promise.Guard.Image, sanitize(spec.Image, maxQuote))
	}
	if s := j.guardStatus(); !isGuarding(s) && j.running() {
		j.lose(policies.TierGuard, "planned: %s beside the containers with a slice; they run, and the guard %s: the kubelet starts it again, and if it stays away create the pod again",
			limits.GuardContainer, describeAbsence(s))
	}
}

// absence words why the guard does not guard.
func describeAbsence(s *corev1.ContainerStatus) string {
	switch {
	case s == nil:
		return "was never started"
	case s.State.Running != nil:
		return "has not looked at the devices yet" + describeRestart(s)
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		return fmt.Sprintf("waits (%s)", sanitize(s.State.Waiting.Reason, maxQuote)) + describeRestart(s)
	}
	return "does not run" + describeRestart(s)
}

func describeRestart(s *corev1.ContainerStatus) string {
	if end := lastTermination(s); end != nil {
		return fmt.Sprintf(" after it ended with %s", describeTermination(end))
	}
	return ""
}

// current are the notices of the guard that runs: one that was started since has not said them. Which Events still
// exist makes no difference.
func (j *evaluation) current(notices []Notice) []Notice {
	var since time.Time
	if s := j.guardStatus(); s != nil && s.State.Running != nil {
		since = s.State.Running.StartedAt.Time
	}
	var out []Notice
	for _, n := range latest(notices) {
		if !n.At.Before(since) && len(out) < maxNotices {
			n.Text = sanitize(n.Text, maxQuote)
			out = append(out, n)
		}
	}
	return out
}

// judgeNotices holds what the guard said against the plan.
func (j *evaluation) evaluateNotices() {
	lifted := time.Time{}
	for _, n := range j.notices {
		if n.Kind == NoticeEnforcing {
			lifted = n.At
		}
	}
	for _, n := range j.notices {
		const again = "planned: a guard that ends what goes past its slice; at %s it said: %s; "
		at := n.At.UTC().Format(time.RFC3339)
		switch n.Kind {
		case NoticeNotEnforcing:
			advice := "see the node's driver and the guard's log"
			if lifted.After(n.At) {
				advice = "an Event says that it can again, and since others than the kubelet can write Events, this counts from the guard's next start on"
			}
			j.lose(policies.TierGuard, again+"%s", at, n.Text, advice)
		case NoticeNotTerminated, NoticeNotTerminable:
			j.lose(policies.TierGuard, again+"end the process yourself, or delete the pod", at, n.Text)
		case NoticeUnmanaged:
			j.lose(policies.TierGuard, again+"give the container a slice, or keep the device from it", at, n.Text)
		}
	}
}

// guardFacts is what became of the guard's container; nil where the pod has none.
func (j *evaluation) guardFacts() *Guard {
	s := j.guardStatus()
	if s == nil {
		return nil
	}
	g := &Guard{Restarts: s.RestartCount}
	if end := lastTermination(s); end != nil && !j.finished() {
		g.Ended = describeTermination(end)
	}
	return g
}

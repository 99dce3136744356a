package observe

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// Observe says what holds of what promise planned for pod. node is the one that the pod was placed on, nil while it is
// unknown. notices can only weaken what is said. Nothing is changed; the same arguments give the same observation.
func Observe(pod *corev1.Pod, node *corev1.Node, promise *policies.Promise, notices []Notice) Observation {
	j := &evaluation{pod: pod, node: node, promise: promise, lost: map[policies.Tier]bool{}}
	j.notices = j.current(notices)
	j.evaluateCheck()
	switch {
	case j.finished():
		j.evaluateFailure()
	case pod.Spec.NodeName != "":
		j.evaluateNode()
		j.evaluateGuard()
		j.evaluateNotices()
	}
	return j.observation()
}

// judge collects what speaks against the plan.
type evaluation struct {
	pod     *corev1.Pod
	node    *corev1.Node
	promise *policies.Promise
	notices []Notice

	reasons []string
	lost    map[policies.Tier]bool // planned, and not seen to hold
}

// say adds a reason without taking a tier away.
func (j *evaluation) addReason(format string, args ...any) {
	text := sanitize(fmt.Sprintf(format, args...), maxSentence)
	if len(j.reasons) < maxReasons && !slices.Contains(j.reasons, text) {
		j.reasons = append(j.reasons, text)
	}
}

// fall takes a tier away where it was planned, and says why.
func (j *evaluation) lose(tier policies.Tier, format string, args ...any) {
	if j.plans(tier) {
		j.lost[tier] = true
		j.addReason(format, args...)
	}
}

// plans says that the tier was planned for one of the containers.
func (j *evaluation) plans(tier policies.Tier) bool {
	return slices.ContainsFunc(j.promise.Planned.Containers, func(c policies.PlannedContainer) bool { return slices.Contains(c.Tiers, tier) })
}

// over says that the pod has run.
func (j *evaluation) finished() bool {
	return j.pod.Status.Phase == corev1.PodSucceeded || j.pod.Status.Phase == corev1.PodFailed
}

// judgeRefusal says why a pod ended that its node never ran: the kubelet found no device for it, for instance.
func (j *evaluation) evaluateFailure() {
	if status := &j.pod.Status; status.Phase == corev1.PodFailed && status.Reason != "" && !j.everRan() {
		j.addReason("planned to run on %s; the pod was ended before it ran, because of %s: %s; create it again",
			j.promise.Planned.Pool, sanitize(status.Reason, maxQuote), sanitize(status.Message, maxQuote))
	}
}

// conclude sums up.
func (j *evaluation) observation() Observation {
	o := Observation{State: j.state(), Node: j.pod.Spec.NodeName, Reasons: j.reasons, Guard: j.guardFacts(), Notices: j.notices}
	for _, c := range j.promise.Planned.Containers {
		holds := []policies.Tier{}
		for _, tier := range c.Tiers {
			if (o.State == Enforced || o.State == Degraded) && !j.lost[tier] {
				holds = append(holds, tier)
			}
		}
		o.Containers = append(o.Containers, Container{Name: c.Name, Tiers: holds, Ended: failure(j.status(c.Name))})
	}
	if o.State == Enforced || o.State == Degraded {
		o.Tier = weakest(o.Containers)
	}
	return o
}

func (j *evaluation) state() State {
	switch {
	case j.finished():
		return Ended
	case len(j.reasons) > 0:
		return Degraded
	case j.enforced():
		return Enforced
	}
	return Pending
}

// begun says that there is something to hold and, where a guard was planned, that it is there to do so. A crashing
// tenant beside a running guard is held as planned all the same.
func (j *evaluation) enforced() bool {
	if j.plans(policies.TierGuard) {
		return isGuarding(j.guardStatus())
	}
	return j.everRan()
}

// weakest is the strongest tier that holds for every container.
func weakest(containers []Container) policies.Tier {
	order := policies.Tiers()
	least := len(order) - 1
	for _, c := range containers {
		strongest := 0
		for _, tier := range c.Tiers {
			strongest = max(strongest, slices.Index(order, tier))
		}
		least = min(least, strongest)
	}
	if len(containers) == 0 {
		return policies.TierNone
	}
	return order[least]
}

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
	j := &judge{pod: pod, node: node, promise: promise, fallen: map[policies.Tier]bool{}}
	j.notices = j.current(notices)
	j.judgeCheck()
	switch {
	case j.over():
		j.judgeRefusal()
	case pod.Spec.NodeName != "":
		j.judgeNode()
		j.judgeGuard()
		j.judgeNotices()
	}
	return j.conclude()
}

// judge collects what speaks against the plan.
type judge struct {
	pod     *corev1.Pod
	node    *corev1.Node
	promise *policies.Promise
	notices []Notice

	reasons []string
	fallen  map[policies.Tier]bool // planned, and not seen to hold
}

// say adds a reason without taking a tier away.
func (j *judge) say(format string, args ...any) {
	text := plain(fmt.Sprintf(format, args...), maxSentence)
	if len(j.reasons) < maxReasons && !slices.Contains(j.reasons, text) {
		j.reasons = append(j.reasons, text)
	}
}

// fall takes a tier away where it was planned, and says why.
func (j *judge) fall(tier policies.Tier, format string, args ...any) {
	if j.plans(tier) {
		j.fallen[tier] = true
		j.say(format, args...)
	}
}

// plans says that the tier was planned for one of the containers.
func (j *judge) plans(tier policies.Tier) bool {
	return slices.ContainsFunc(j.promise.Planned.Containers, func(c policies.PlannedContainer) bool { return slices.Contains(c.Tiers, tier) })
}

// over says that the pod has run.
func (j *judge) over() bool {
	return j.pod.Status.Phase == corev1.PodSucceeded || j.pod.Status.Phase == corev1.PodFailed
}

// judgeRefusal says why a pod ended that its node never ran: the kubelet found no device for it, for instance.
func (j *judge) judgeRefusal() {
	if status := &j.pod.Status; status.Phase == corev1.PodFailed && status.Reason != "" && !j.everRan() {
		j.say("planned to run on %s; the pod was ended before it ran, because of %s: %s; create it again",
			j.promise.Planned.Pool, plain(status.Reason, maxQuote), plain(status.Message, maxQuote))
	}
}

// conclude sums up.
func (j *judge) conclude() Observation {
	o := Observation{State: j.state(), Node: j.pod.Spec.NodeName, Reasons: j.reasons, Guard: j.guardFacts(), Notices: j.notices}
	for _, c := range j.promise.Planned.Containers {
		holds := []policies.Tier{}
		for _, tier := range c.Tiers {
			if (o.State == Holds || o.State == Weaker) && !j.fallen[tier] {
				holds = append(holds, tier)
			}
		}
		o.Containers = append(o.Containers, Container{Name: c.Name, Tiers: holds, Ended: badEnd(j.status(c.Name))})
	}
	if o.State == Holds || o.State == Weaker {
		o.Tier = weakest(o.Containers)
	}
	return o
}

func (j *judge) state() State {
	switch {
	case j.over():
		return Ended
	case len(j.reasons) > 0:
		return Weaker
	case j.begun():
		return Holds
	}
	return Pending
}

// begun says that there is something to hold and, where a guard was planned, that it is there to do so. A crashing
// tenant beside a running guard is held as planned all the same.
func (j *judge) begun() bool {
	if j.plans(policies.TierGuard) {
		return guards(j.guardStatus())
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

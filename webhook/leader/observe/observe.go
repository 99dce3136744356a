package observe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Place has the facts about the place where a pod runs.
type Place struct {
	Node  *corev1.Node // nil while it is unknown
	Agent bool         // the node's agent enforces
	// NotEnforced is why the agent does not enforce the pod's slice all the same; empty: it does.
	NotEnforced string
	// Instances are the containers that got a MIG instance where they might have got a share.
	Instances []string
}

// Observe compares the enforcement of pod with its promise. notices can only lower a tier. Observe changes nothing; the
// same arguments give the same observation.
func Observe(pod *corev1.Pod, at Place, promised *promise.Promise, notices []Notice) Observation {
	e := &evaluation{pod: pod, at: at, node: at.Node, promise: promised, planned: promised.PlannedOn(pod), lost: map[api.Tier]bool{}}
	e.notices = e.current(notices)
	e.evaluateCheck()
	switch {
	case e.finished():
		e.evaluateFailure()
	case pod.Spec.NodeName != "":
		e.evaluateNode()
		e.evaluateGuard()
		e.evaluateNotices()
	}
	return e.observation()
}

// evaluation collects contradictions of the plan.
type evaluation struct {
	pod     *corev1.Pod
	node    *corev1.Node
	at      Place
	promise *promise.Promise
	planned promise.Planned // with the pod's images of now
	notices []Notice

	reasons []string
	lost    map[api.Tier]bool // planned, and not observed
}

// addReason adds a reason and lowers no tier.
func (e *evaluation) addReason(format string, args ...any) {
	text := shorten.Line(fmt.Sprintf(format, args...), maxSentence)
	if len(e.reasons) < maxReasons && !slices.Contains(e.reasons, text) {
		e.reasons = append(e.reasons, text)
	}
}

// lose removes a tier that was planned, and adds the reason.
func (e *evaluation) lose(tier api.Tier, format string, args ...any) {
	if e.plans(tier) {
		e.lost[tier] = true
		if !e.byInstances() {
			e.addReason(format, args...)
		}
	}
}

// plans reports whether the tier was planned for one of the containers.
func (e *evaluation) plans(tier api.Tier) bool {
	return slices.ContainsFunc(e.planned.Containers, func(c promise.PlannedContainer) bool { return slices.Contains(c.Tiers, tier) })
}

// finished reports whether the pod has terminated.
func (e *evaluation) finished() bool {
	return e.pod.Status.Phase == corev1.PodSucceeded || e.pod.Status.Phase == corev1.PodFailed
}

// evaluateFailure adds why a pod failed that never ran: the kubelet found no device for it, for instance.
func (e *evaluation) evaluateFailure() {
	if status := &e.pod.Status; status.Phase == corev1.PodFailed && status.Reason != "" && !e.everRan() {
		e.addReason("planned to run on %s; the pod failed before it ran, because of %s: %s; create it again",
			e.promise.Planned.Pool, shorten.Line(status.Reason, maxQuote), shorten.Line(status.Message, maxQuote))
	}
}

// observation returns the result.
func (e *evaluation) observation() Observation {
	o := Observation{State: e.state(), Node: e.pod.Spec.NodeName, Reasons: e.reasons, Guard: e.guardFacts(), Notices: e.notices}
	var better []string
	for _, c := range e.planned.Containers {
		tiers := []api.Tier{}
		if (o.State == Enforced || o.State == Degraded) && e.byInstance(c.Name) {
			tiers = append(tiers, api.TierHardware)
			better = append(better, c.Name)
		}
		for _, tier := range c.Tiers {
			if (o.State == Enforced || o.State == Degraded) && !e.lost[tier] {
				tiers = append(tiers, tier)
			}
		}
		o.Containers = append(o.Containers, Container{Name: c.Name, Tiers: tiers, Ended: e.failure(c.Name)})
	}
	if o.State == Enforced || o.State == Degraded {
		o.Tier = weakest(o.Containers)
	}
	if len(better) > 0 {
		o.Better = []string{gotInstances(better)}
	}
	return o
}

// gotInstances is one sentence: a pod may have any number of such containers.
func gotInstances(containers []string) string {
	names := strings.Join(containers[:min(len(containers), maxReasons)], ", ")
	switch more := len(containers) - maxReasons; {
	case len(containers) == 1:
		return names + " got a MIG instance, which was free, in place of a share of a device: the hardware holds it"
	case more > 0:
		names += fmt.Sprintf(" and %d more", more)
	}
	return names + " got MIG instances, which were free, in place of shares of a device: the hardware holds them"
}

func (e *evaluation) state() State {
	switch {
	case e.finished():
		return Ended
	case len(e.reasons) > 0:
		return Degraded
	case e.enforced():
		return Enforced
	}
	return Pending
}

// enforced reports whether a container has started and, where a guard was planned, whether the guard is ready. A crashing
// tenant beside a running guard is enforced as planned all the same.
func (e *evaluation) enforced() bool {
	if e.plans(api.TierGuard) && !e.byAgent() && !e.byInstances() {
		return isGuarding(e.guardStatus())
	}
	return e.everRan()
}

// byInstance reports whether a container got an instance. While the check fails, nothing has started on it.
func (e *evaluation) byInstance(container string) bool {
	return slices.Contains(e.at.Instances, container) && !e.lost[api.TierHardware]
}

// byInstances reports whether the hardware enforces each slice of the pod: then no other planned tier is missed.
func (e *evaluation) byInstances() bool {
	return !slices.ContainsFunc(e.promise.Containers, func(c promise.Container) bool { return !e.byInstance(c.Name) })
}

// weakest returns the strongest tier that applies to every container.
func weakest(containers []Container) api.Tier {
	order := api.Tiers()
	least := len(order) - 1
	for _, c := range containers {
		strongest := 0
		for _, tier := range c.Tiers {
			strongest = max(strongest, slices.Index(order, tier))
		}
		least = min(least, strongest)
	}
	if len(containers) == 0 {
		return api.TierNone
	}
	return order[least]
}

package observe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// The first drivers with which the guard and the driver's own limit work.
const (
	guardDriverMajor = 565 // 565.57.01 is its first release
	guardDriverMinor = 57
	limitDriverMajor = 615
)

// evaluateNode compares the node's current labels with the plan. A missing label contradicts nothing: feature discovery
// removes its labels while it restarts.
func (e *evaluation) evaluateNode() {
	if e.node == nil {
		e.lose(api.TierDriver, "planned: the driver's own limit, which needs driver %d; node %s is unknown: see whether it still exists",
			limitDriverMajor, e.pod.Spec.NodeName)
		return
	}
	for i := range e.promise.Containers {
		offer := pools.OfferOf(e.node, e.promise.Containers[i].Resource)
		e.evaluateDriver(&offer)
		e.evaluateSharing(&offer)
	}
	e.evaluateLabels()
}

func (e *evaluation) evaluateDriver(offer *pools.Pool) {
	major, minor := offer.DriverMajor, offer.DriverMinor
	release := fmt.Sprint(major)
	if minor > 0 {
		release = fmt.Sprintf("%d.%02d", major, minor)
	}
	switch {
	case major == 0:
		e.lose(api.TierDriver,
			"planned: the driver's own limit, which needs driver %d; node %s has no label with its driver: deploy GPU feature discovery there",
			limitDriverMajor, e.node.Name)
	case major < limitDriverMajor:
		e.lose(api.TierDriver,
			"planned: the driver's own limit, which needs driver %d; node %s has %s: update it, or correct driverLimits of the pool",
			limitDriverMajor, e.node.Name, release)
	}
	if !e.byAgent() && major > 0 && (major < guardDriverMajor || major == guardDriverMajor && minor > 0 && minor < guardDriverMinor) {
		e.lose(api.TierGuard,
			"planned: the guard, which needs driver 565.57.01; node %s has %s, whose readings of memory the guard cannot act on: update the driver",
			e.node.Name, release)
	}
}

// evaluateSharing compares strategies where no affinity binds the pod to its pool; where one does, evaluateLabels compares
// the same labels. An MPS daemon that the cluster runs itself is behind devices that feature discovery labels as unshared.
func (e *evaluation) evaluateSharing(offer *pools.Pool) {
	planned := e.promise.Strategy
	if len(e.promise.Affinity) > 0 || offer.Strategy == "" || offer.Strategy == planned || e.ownDaemon() {
		return
	}
	e.lost[api.TierHardware], e.lost[api.TierMPS] = true, true
	e.addReason("planned: %s of %s; node %s now offers it by %s: create the pod again, so that it is planned for what the node offers",
		planned, offer.Resource, e.node.Name, offer.Strategy)
}

// ownDaemon reports whether the pod reaches its MPS daemon through a mount that gpuslice wrote.
func (e *evaluation) ownDaemon() bool {
	return slices.ContainsFunc(e.promise.Containers, func(c promise.Container) bool { return c.UsesMPS() })
}

// evaluateLabels compares the labels of the pod's affinity, by which it was planned, with the labels of the node. Kubernetes does
// not move pods when labels change.
func (e *evaluation) evaluateLabels() {
	differing := e.differing()
	if len(differing) == 0 {
		return
	}
	var texts []string
	for _, r := range differing {
		texts = append(texts, fmt.Sprintf("%s %s (node has %s)", r.Key, strings.Join(r.Values, " or "), e.node.Labels[r.Key]))
		e.loseByLabel(r.Key)
	}
	e.addReason("planned for a node with %s; %s now differs: create the pod again, so that it is planned for what the node offers",
		strings.Join(texts, ", "), e.node.Name)
}

// loseByLabel removes the tiers that depend on a label: limits that are a share of the device depend on its size, MPS and
// hardware on how it is shared. Limits in bytes apply on any device.
func (e *evaluation) loseByLabel(key string) {
	_, word, _ := strings.Cut(key, "/")
	switch {
	case strings.HasSuffix(word, ".memory"), strings.HasSuffix(word, ".product"):
		e.lost[api.TierFramework] = true
	case strings.HasSuffix(word, ".sharing-strategy"), strings.HasSuffix(word, "-sharing-strategy"):
		e.lost[api.TierMPS], e.lost[api.TierHardware] = true, true
	case strings.HasSuffix(word, ".replicas"), strings.HasSuffix(word, "mig.strategy"), strings.HasSuffix(word, "-partition-size"):
		e.lost[api.TierHardware] = true
	}
}

// differing returns the requirements that the node contradicts, of the planned term that it contradicts least; none if it
// meets a term. Requirements on the driver are evaluated by the tiers that need them.
func (e *evaluation) differing() []corev1.NodeSelectorRequirement {
	var least []corev1.NodeSelectorRequirement
	for i, term := range e.promise.Affinity {
		var differ []corev1.NodeSelectorRequirement
		for _, r := range term.MatchExpressions {
			value, has := e.node.Labels[r.Key]
			if has && r.Operator == corev1.NodeSelectorOpIn && !slices.Contains(r.Values, value) {
				differ = append(differ, r)
			}
		}
		if i == 0 || len(differ) < len(least) {
			least = differ
		}
	}
	return least
}

func (e *evaluation) nodeName() string {
	if e.pod.Spec.NodeName == "" {
		return "its node"
	}
	return e.pod.Spec.NodeName
}

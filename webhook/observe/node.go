package observe

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// The drivers from which the guard and the driver's own limit work.
const (
	guardDriverMajor = 565 // 565.57.01 is its first release
	guardDriverMinor = 57
	limitDriverMajor = 615
)

// judgeNode holds what the node's labels say at this time against what was planned. A label that is missing contradicts
// nothing: feature discovery takes its labels away while it restarts.
func (j *evaluation) evaluateNode() {
	if j.node == nil {
		j.lose(policies.TierDriver, "planned: the driver's own limit, which needs driver %d; node %s is not known: see whether it still exists", limitDriverMajor, j.pod.Spec.NodeName)
		return
	}
	for i := range j.promise.Containers {
		offer := policies.OfferOf(j.node, j.promise.Containers[i].Resource)
		j.evaluateDriver(&offer)
		j.evaluateSharing(&offer)
	}
	j.evaluateLabels()
}

func (j *evaluation) evaluateDriver(offer *policies.Pool) {
	major, minor := offer.DriverMajor, offer.DriverMinor
	release := fmt.Sprint(major)
	if minor > 0 {
		release = fmt.Sprintf("%d.%02d", major, minor)
	}
	switch {
	case major == 0:
		j.lose(policies.TierDriver, "planned: the driver's own limit, which needs driver %d; node %s does not say which it has: deploy GPU feature discovery there", limitDriverMajor, j.node.Name)
	case major < limitDriverMajor:
		j.lose(policies.TierDriver, "planned: the driver's own limit, which needs driver %d; node %s has %s: update it, or correct driverLimits of the pool", limitDriverMajor, j.node.Name, release)
	}
	if major > 0 && (major < guardDriverMajor || major == guardDriverMajor && minor > 0 && minor < guardDriverMinor) {
		j.lose(policies.TierGuard, "planned: the guard, which needs driver 565.57.01; node %s has %s and shows the guard no memory that it may act on: update the driver", j.node.Name, release)
	}
}

// judgeSharing compares strategies where no affinity holds the pod to its pool; where one does, judgeLabels compares
// the very labels. An MPS daemon of the cluster's own is behind devices that feature discovery calls unshared.
func (j *evaluation) evaluateSharing(offer *policies.Pool) {
	planned := j.promise.Strategy
	if len(j.promise.Affinity) > 0 || offer.Strategy == "" || offer.Strategy == planned || j.ownDaemon() {
		return
	}
	j.lost[policies.TierHardware], j.lost[policies.TierMPS] = true, true
	j.addReason("planned: %s of %s; node %s offers it by %s at this time: create the pod again, so that it is planned for what the node offers",
		planned, offer.Resource, j.node.Name, offer.Strategy)
}

// ownDaemon says that the pod reaches its MPS daemon through a mount that gpuslice wrote.
func (j *evaluation) ownDaemon() bool {
	for i := range j.promise.Containers {
		if slices.ContainsFunc(j.promise.Containers[i].Env, func(v policies.Variable) bool { return v.Name == policies.VarMPSPipe }) {
			return true
		}
	}
	return false
}

// judgeLabels compares the labels that the pod was planned by, those of its affinity, with those of the node. Pods are
// not moved when labels change.
func (j *evaluation) evaluateLabels() {
	differing := j.differing()
	if len(differing) == 0 {
		return
	}
	var texts []string
	for _, r := range differing {
		texts = append(texts, fmt.Sprintf("%s %s (node says %s)", r.Key, strings.Join(r.Values, " or "), j.node.Labels[r.Key]))
		j.loseByLabel(r.Key)
	}
	j.addReason("planned for a node with %s; %s differs at this time: create the pod again, so that it is planned for what the node offers", strings.Join(texts, ", "), j.node.Name)
}

// fallByLabel takes away what depends on a label: caps that are a share of the device on its size, MPS and hardware on
// how it is shared. Limits in bytes hold on any device.
func (j *evaluation) loseByLabel(key string) {
	_, word, _ := strings.Cut(key, "/")
	switch {
	case strings.HasSuffix(word, ".memory"), strings.HasSuffix(word, ".product"):
		j.lost[policies.TierFramework] = true
	case strings.HasSuffix(word, ".sharing-strategy"), strings.HasSuffix(word, "-sharing-strategy"):
		j.lost[policies.TierMPS], j.lost[policies.TierHardware] = true, true
	case strings.HasSuffix(word, ".replicas"), strings.HasSuffix(word, "mig.strategy"), strings.HasSuffix(word, "-partition-size"):
		j.lost[policies.TierHardware] = true
	}
}

// differing are the requirements that the node contradicts, of the planned term that it contradicts least: none where
// it meets one of them. Bounds on the driver are judged by what needs them.
func (j *evaluation) differing() []corev1.NodeSelectorRequirement {
	var least []corev1.NodeSelectorRequirement
	for i, term := range j.promise.Affinity {
		var differ []corev1.NodeSelectorRequirement
		for _, r := range term.MatchExpressions {
			value, has := j.node.Labels[r.Key]
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

func (j *evaluation) nodeName() string {
	if j.pod.Spec.NodeName == "" {
		return "its node"
	}
	return j.pod.Spec.NodeName
}

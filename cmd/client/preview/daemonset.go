package preview

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// maxElsewhere bounds the answers for other pools.
const maxElsewhere = 16

// elsewhere are the answers to a DaemonSet's pods on pools that the result does not speak of: a DaemonSet has a pod on each node that its
// own constraints leave, and each pod is planned for its node alone.
func (e *Engine) elsewhere(raw json.RawMessage, r *Result) (warnings []string) {
	if r.Kind != "DaemonSet" || r.APIVersion != appsv1.SchemeGroupVersion.String() || e.server != nil {
		return nil
	}
	pod, violation, err := rawpod.Decode(raw)
	if err != nil || violation != nil {
		return nil
	}
	in := e.Cluster.InputOf(r.Namespace, pod.Pod)
	var known, sites []string
	if p := r.Decision.Promise; p != nil {
		known = p.Pools
	}
	for i := range in.Pools {
		if p := &in.Pools[i]; slices.Contains(known, p.Name) {
			sites = append(sites, p.Site)
		}
	}
	for i := range in.Pools {
		p := &in.Pools[i]
		if ok, _ := p.Reach(pod.Pod, nil); !ok || len(p.Nodes) == 0 || slices.Contains(sites, p.Site) || len(warnings) == maxElsewhere {
			continue
		}
		sites = append(sites, p.Site)
		there := pod
		there.Pod = onNode(pod.Pod, reachedNode(p, pod.Pod))
		here := in
		here.Pod = there.Pod
		d, _ := e.create(here, there, promise.Keys{})
		if answer := answerOn(d); answer != "" {
			warnings = append(warnings, fmt.Sprintf("its pods on nodes of %s: %s", p.Describe(), answer))
		}
	}
	return warnings
}

// reachedNode is a node of a pool that the pod reaches; a pool may have others that it does not.
func reachedNode(p *pools.Pool, pod *corev1.Pod) string {
	for i := range p.Nodes {
		kind := *p
		kind.Nodes = p.Nodes[i : i+1]
		if ok, _ := kind.Reach(pod, nil); ok {
			return p.Nodes[i].Named[0].Name
		}
	}
	return p.Nodes[0].Named[0].Name
}

// answerOn is one line about a pod on its node.
func answerOn(d policies.Decision) string {
	switch d.Outcome {
	case policies.Denied:
		return "denied: " + d.Message()
	case policies.Mutated:
		return Summary(d)
	}
	return ""
}

// onNode is the pod as the DaemonSet's controller binds it to a node, in the place of its own node affinity.
func onNode(pod *corev1.Pod, node string) *corev1.Pod {
	out := pod.DeepCopy()
	if out.Spec.Affinity == nil {
		out.Spec.Affinity = &corev1.Affinity{}
	}
	out.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
	return out
}

package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
)

// labelProduct is the model of a node's GPUs, and of how they are shared: "NVIDIA-L4-SHARED".
const labelProduct = nvidia.ResourcePrefix + "gpu.product"

// modelOf is a value of labelProduct without the parts that another layout changes.
func modelOf(product string) string {
	model, _, _ := strings.Cut(product, "-MIG-")
	return strings.TrimSuffix(model, "-SHARED")
}

// ofLayout are labels that another layout changes: pods' demands on them do not bind a plan.
var ofLayout = []string{nvidia.ResourcePrefix + "gpu.replicas", nvidia.ResourcePrefix + "gpu.sharing-strategy",
	nvidia.ResourcePrefix + "gpu.memory", nvidia.ResourcePrefix + "gpu.count",
	nvidia.ResourcePrefix + "device-plugin.config", nvidia.ResourcePrefix + "mps.capable"}

// rule is a pods' demand on nodes: selector, affinity and taints that they tolerate.
type rule struct {
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

// ruleText names equal rules.
func ruleText(p *inventory.Pod) string {
	return fmt.Sprint(p.NodeSelector, p.Affinity, p.Tolerations)
}

func ruleOf(p *inventory.Pod) *rule {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{}}}
	for key, value := range p.NodeSelector {
		switch {
		case key == labelProduct:
			pod.Spec.NodeSelector[key] = modelOf(value)
		case !changes(key):
			pod.Spec.NodeSelector[key] = value
		}
	}
	if p.Affinity != nil && p.Affinity.NodeAffinity != nil && p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		required := p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.DeepCopy()
		for i := range required.NodeSelectorTerms {
			term := &required.NodeSelectorTerms[i]
			term.MatchExpressions = demands(term.MatchExpressions)
		}
		empty := func(t corev1.NodeSelectorTerm) bool { return len(t.MatchExpressions)+len(t.MatchFields) == 0 }
		if !slices.ContainsFunc(required.NodeSelectorTerms, empty) { // a term without demands matches no node, and there matched some
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
		}
	}
	return &rule{nodeaffinity.GetRequiredNodeAffinity(pod), p.Tolerations}
}

// demands are the expressions that bind a plan. It changes their values.
func demands(all []corev1.NodeSelectorRequirement) (left []corev1.NodeSelectorRequirement) {
	for _, e := range all {
		if changes(e.Key) || e.Key == labelProduct && e.Operator != corev1.NodeSelectorOpIn { // NotIn may only exclude shared GPUs
			continue
		}
		for i := range e.Values {
			if e.Key == labelProduct {
				e.Values[i] = modelOf(e.Values[i])
			}
		}
		left = append(left, e)
	}
	return left
}

func changes(key string) bool {
	return slices.Contains(ofLayout, key) || strings.HasPrefix(key, nvidia.ResourcePrefix+"mig")
}

func (r *rule) allows(n *corev1.Node) bool {
	matches, err := r.affinity.Match(n)
	if err != nil || !matches {
		return false
	}
	_, untolerated := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, r.tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, true)
	return !untolerated
}

// readNodes adds the nodes that pods can be placed on. Those are of one kind that have the same and are the same to each pod.
func (r *reader) readNodes(pods []*inventory.Pod) {
	var rules []*rule
	index := map[string]int{} // of rules, from 1
	names := map[string]int{}
	for _, p := range pods {
		if text := ruleText(p); index[text] == 0 {
			rules = append(rules, ruleOf(p))
			index[text] = len(rules)
		}
	}
	allows := [][]bool{}
	for i := range r.from.Nodes {
		n := &r.from.Nodes[i]
		switch {
		case n.Unschedulable || n.NotReady:
			r.counts[noteNodes]++
			continue
		case n.GPUs.Count == 0:
			r.counts[noteUnknown]++
			r.unknown[n.Name] = true
			continue
		}
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: maps.Clone(n.Labels)}, Spec: corev1.NodeSpec{Taints: n.Taints}}
		if product, labeled := n.Labels[labelProduct]; labeled {
			object.Labels[labelProduct] = modelOf(product)
		}
		row := make([]bool, len(rules))
		for j, rule := range rules {
			row[j] = rule.allows(object)
		}
		kind := r.kind(n)
		key := fmt.Sprint(kind, row)
		at, known := names[key]
		if !known {
			at = len(r.out.Kinds)
			names[key] = at
			r.out.Kinds = append(r.out.Kinds, kind)
			allows = append(allows, row)
		}
		r.out.Add(n.Name, at)
		r.nodes[n.Name] = len(r.out.Nodes) - 1
		r.out.Nodes[len(r.out.Nodes)-1].Labels = n.Labels
	}
	for text, rule := range index {
		allowed := make([]bool, len(r.out.Kinds))
		for kind := range allowed {
			allowed[kind] = allows[kind][rule-1]
		}
		r.allowed[text] = allowed
	}
}

func (r *reader) kind(n *inventory.Node) demand.Kind {
	k := demand.Kind{Model: n.GPUs.Product, Devices: n.GPUs.Count, DeviceMemory: int64(n.GPUs.Memory),
		MIG: n.GPUs.MIG, Strategy: layout.Exclusive,
		CPU:    max(n.Allocatable["cpu"]-n.Others["cpu"], 0),
		Memory: max(n.Allocatable["memory"]-n.Others["memory"], 0) >> 20,
		Offers: map[string]int64{}}
	if most, known := n.Allocatable["pods"]; known {
		if k.Pods = most - n.Others["pods"]; k.Pods < 1 {
			k.Pods = -1
		}
	}
	for name, count := range n.Allocatable {
		if r.from.IsGPU(name) && count > 0 {
			k.Offers[name] = count
		}
	}
	for _, o := range n.Offers {
		if pool := r.pools[o.Pool]; o.Units > 0 && pool.Strategy != "" && pool.Strategy != layout.Exclusive {
			k.Strategy, k.Replicas = pool.Strategy, pool.Replicas
		}
	}
	return k
}

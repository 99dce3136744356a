package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// sharedGPU is the resource of which the units are parts on a granular pool.
const sharedGPU = corev1.ResourceName("nvidia.com/gpu.shared")

// labelReplicaCount is the number of parts of a node's device.
const labelReplicaCount = "nvidia.com/gpu.replicas"

// granularPools are the pools whose replicas are parts of one device.
func (f *Facts) granularPools() (granular []*pools.Pool) {
	all := f.snapshot().Pools()
	for i := range all {
		if all[i].Granular {
			granular = append(granular, &all[i])
		}
	}
	return granular
}

// checkGranularPools looks for reasons why the sum of the parts on a node does not mean memory: nodes that are shared
// in another way, pods that were given other parts or none, and quotas that count parts.
func checkGranularPools(f *Facts) []Finding {
	var all []Finding
	for _, p := range f.granularPools() {
		nodes := f.selectedBy(p)
		all = append(all, leftOut(p, nodes)...)
		all = append(all, f.otherParts(p, nodes)...)
		all = append(all, f.countedParts(p)...)
	}
	return all
}

// selectedBy are the nodes that match a declared pool's selector and offer its resource, by their names.
func (f *Facts) selectedBy(p *pools.Pool) map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for _, n := range f.Nodes {
		_, offered := n.Status.Allocatable[corev1.ResourceName(p.Resource)]
		if offered && p.Selects(n) {
			nodes[n.Name] = n
		}
	}
	return nodes
}

func leftOut(p *pools.Pool, nodes map[string]*corev1.Node) []Finding {
	found := newFinding(Problem,
		"nodes of granular pool %s are left out of it: their replicas are not the parts of one GPU that it declares", p.Name).
		WithRemedy("give them one GPU in %d replicas by time-slicing, or other labels than the pool's selector", p.Replicas)
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if !p.HasNode(name) {
			found = found.With(object("node", "", name), "metadata.labels", p.LeavesOut(nodes[name]))
		}
	}
	return withEvidence(found)
}

// otherParts are the pods on the nodes for which a unit is not the amount of memory that it is for the pool.
func (f *Facts) otherParts(p *pools.Pool, nodes map[string]*corev1.Node) []Finding {
	stale := newFinding(Problem,
		"pods on nodes of granular pool %s were given parts of another size: what is free there is not what the scheduler counts", p.Name).
		WithRemedy("drain the node before its replicas or the pool's memory are changed; now delete these pods, so that they are created again")
	none := newFinding(Problem,
		"pods on nodes of granular pool %s take parts without a slice of the pool, and see all of the GPU's memory", p.Name).
		WithRemedy(
			"delete them, and create them with nvidia.com/gpu: 1 and the label %s: \"8Gi\" (or what they need) in a namespace that a policy governs",
			api.LabelMemory)
	for _, pod := range f.SharingPods {
		node := nodes[pod.Spec.NodeName]
		if node == nil {
			continue
		}
		given, _ := promise.Decode(pod.Annotations[api.AnnotationPromise])
		where := object("pod", pod.Namespace, pod.Name)
		switch c := partsHolder(pod, given); {
		case c == nil:
			none = none.With(where, "spec.nodeName", node.Name)
		case strconv.Itoa(c.Replicas) != node.Labels[labelReplicaCount], c.Granule != p.Granule():
			stale = stale.With(where, "given", fmt.Sprintf("%d of %d parts of %s; node %s has %s, and the pool's are of %s",
				c.Count, c.Replicas, c.Granule, node.Name, node.Labels[labelReplicaCount], p.Granule()))
		}
	}
	return append(withEvidence(stale), withEvidence(none)...)
}

// partsHolder is the first promised container that requests parts; nil: one was promised none.
func partsHolder(pod *corev1.Pod, given *promise.Promise) (first *promise.Container) {
	for _, c := range pod.Spec.Containers {
		if units := c.Resources.Limits[sharedGPU]; units.IsZero() {
			continue
		}
		p := given.Container(c.Name)
		if p == nil || !p.Granular() {
			return nil
		}
		first = cmp.Or(first, p)
	}
	return first
}

// countedParts are quotas whose unit is a part.
func (f *Facts) countedParts(p *pools.Pool) []Finding {
	name := corev1.ResourceName(corev1.DefaultResourceRequestsPrefix + p.Resource)
	found := newFinding(Note, "ResourceQuotas on %s count parts of %s on pool %s, and replicas elsewhere", p.Resource, p.Granule(), p.Name)
	for _, q := range f.Quotas {
		if hard, ok := q.Spec.Hard[name]; ok {
			found = found.With(object("resourcequota", q.Namespace, q.Name), "spec.hard["+string(name)+"]", hard.String())
		}
	}
	return withEvidence(found)
}

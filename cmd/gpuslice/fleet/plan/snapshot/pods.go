package snapshot

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
)

// mostUtilized is how much of a device's multiprocessors pods that share it use together.
const mostUtilized = 0.8

func (r *reader) readPod(p *inventory.Pod) {
	if r.unknown[p.Node] {
		r.counts[noteOnUnknown]++
		return
	}
	out := demand.Pod{Namespace: p.Namespace, Name: p.Name, Priority: p.Priority,
		CPU: p.Requests["cpu"], Memory: (p.Requests["memory"] + 1<<20 - 1) >> 20,
		Requests: map[string]int64{}, Allowed: r.allowed[ruleText(p)]}
	for name, count := range p.Requests {
		if count > 0 && (r.from.IsGPU(name) || slices.ContainsFunc(p.Slices, func(s inventory.Slice) bool { return s.Resource == name })) {
			out.Requests[name] = count
		}
	}
	if node, known := r.nodes[p.Node]; known {
		out.Node = node + 1
		out.Allowed = r.sameModel(ruleText(p), r.out.Nodes[node].Kind)
	}
	if len(p.Spread) > 0 || p.Affinity != nil && (p.Affinity.PodAffinity != nil || p.Affinity.PodAntiAffinity != nil) {
		r.counts[noteSpread]++
	}
	if p.Claims > 0 {
		r.counts[noteClaims]++
	}
	for _, name := range slices.Sorted(maps.Keys(out.Requests)) {
		r.need(&out, r.poolOf(p, name), name, out.Requests[name])
	}
	r.byInstances(&out, p)
	r.bySlices(&out, p)
	r.byModel(&out, p)
	if out.Devices == 0 {
		return // it has claims alone, or waits for a resource of 0
	}
	r.observe(&out, p)
	if out.Node > 0 {
		fitWhereItRuns(&out, &r.out.Kinds[r.out.Nodes[out.Node-1].Kind])
	}
	r.out.Pods = append(r.out.Pods, out)
}

// fitWhereItRuns bounds the need of a pod by the node on which it runs: there it fits, whatever labels and requests add up to.
func fitWhereItRuns(p *demand.Pod, k *demand.Kind) {
	p.Devices, p.CPU, p.Memory = min(p.Devices, k.Devices), min(p.CPU, k.CPU), min(p.Memory, k.Memory)
	if k.DeviceMemory > 0 {
		p.DeviceMemory = min(p.DeviceMemory, k.DeviceMemory)
	}
}

// sameModel narrows a rule's nodes to the model on which the pod runs.
func (r *reader) sameModel(rule string, kind int) []bool {
	key := rule + "\x00" + r.out.Kinds[kind].Model
	if known, ok := r.allowed[key]; ok {
		return known
	}
	allowed := slices.Clone(r.allowed[rule])
	for i := range allowed {
		allowed[i] = i == kind || allowed[i] && r.out.Kinds[i].Model == r.out.Kinds[kind].Model
	}
	r.allowed[key] = allowed
	return allowed
}

// byModel counts pools by model, where the pod runs on one or gpuslice planned one.
func (r *reader) byModel(out *demand.Pod, p *inventory.Pod) {
	pool, model := out.Pool, ""
	switch planned := r.pools[pool]; {
	case pool == "":
	case out.Node > 0:
		model = r.out.Kinds[r.out.Nodes[out.Node-1].Kind].Model
	case planned != nil && slices.ContainsFunc(p.Slices, func(s inventory.Slice) bool { return s.Pool == pool }):
		model = planned.Product
	}
	if model != "" {
		out.Pool += "\x00" + model
		r.out.Units[out.Pool], r.out.Models[out.Pool] = r.out.Units[pool], model
	}
}

// poolOf is the pool whose resource a pod requests: that of its slice, of its node, or any with that resource; nil: unknown.
func (r *reader) poolOf(p *inventory.Pod, resource string) *inventory.Pool {
	for i := range p.Slices {
		if pool := r.pools[p.Slices[i].Pool]; pool != nil && pool.Resource == resource {
			return pool
		}
	}
	for i := range r.from.Nodes {
		n := &r.from.Nodes[i]
		if p.Node != "" && n.Name != p.Node {
			continue
		}
		for _, o := range n.Offers {
			if pool := r.pools[o.Pool]; pool.Resource == resource {
				return pool
			}
		}
	}
	return nil
}

// need adds the part of a device in a resource's units.
func (r *reader) need(out *demand.Pod, pool *inventory.Pool, resource string, count int64) {
	out.Pool, out.Units = resource, out.Units+count
	r.out.Units[resource] = 1
	if profile, ok := strings.CutPrefix(resource, nvidia.MIGPrefix); ok {
		out.Devices, out.Share, out.Isolated = 1, 1, true
		if pool != nil {
			out.DeviceMemory += int64(pool.InstanceMemory) * count
			if g := layout.GeometryOf(pool.Product, int64(pool.DeviceMemory)); g != nil {
				if i := g.Index(profile); i >= 0 {
					out.Pool, out.Units = "mig/"+pool.Product, int64(g.Profiles[i].Size)*count
					r.out.Units[out.Pool] = int64(g.Slices)
				}
			}
		}
		return
	}
	if pool == nil || pool.Replicas < 2 {
		out.Devices, out.Share = out.Devices+int(min(count, 1<<20)), demand.Whole
		return
	}
	out.Pool = pool.Name
	r.out.Units[pool.Name] = int64(pool.Replicas)
	out.Devices = 1
	out.Share = min(out.Share+int(count)*demand.Whole/pool.Replicas, demand.Whole)
}

// byInstances counts a pod with more MIG instances than a device has room for by whole devices: the fewest that hold the instances.
func (r *reader) byInstances(out *demand.Pod, p *inventory.Pod) {
	devices, size, compute, slots := 0, 0, 0, 0
	var of *layout.Geometry
	for name, count := range out.Requests {
		profile, isInstance := strings.CutPrefix(name, nvidia.MIGPrefix)
		pool := r.poolOf(p, name)
		if !isInstance || pool == nil {
			continue
		}
		n := int(min(count, 1<<20))
		g := layout.GeometryOf(pool.Product, int64(pool.DeviceMemory))
		if i := g.Index(profile); i >= 0 {
			of, size, compute = g, size+g.Profiles[i].Size*n, compute+g.Profiles[i].Compute*n
			slots = max(slots, ceil(n, len(g.Profiles[i].Starts)))
		} else if pool.DeviceMemory > 0 {
			devices += ceil(int(pool.InstanceMemory)*n, int(pool.DeviceMemory))
		}
	}
	if of != nil {
		devices += max(slots, ceil(size, of.Slices), ceil(compute, of.Compute))
	}
	if devices > 1 {
		out.Devices, out.Share, out.DeviceMemory = devices, demand.Whole, 0
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// bySlices counts the pod's slices: memory, if gpuslice gave it a part.
func (r *reader) bySlices(out *demand.Pod, p *inventory.Pod) {
	var memory int64
	compute, claimed := 0, false
	for i := range p.Slices {
		s := &p.Slices[i]
		pool := r.pools[s.Pool]
		if s.Strategy == layout.Exclusive || s.Memory == 0 {
			continue
		}
		memory, compute = memory+int64(s.Memory), compute+s.Compute
		claimed = claimed || pool != nil && pool.Claims
		out.Isolated = out.Isolated || s.Strategy == layout.MIG
		if pool != nil && pool.Claims && pool.DeviceMemory > 0 {
			out.Pool, out.Units = pool.Name, out.Units+int64(s.Memory)
			r.out.Units[pool.Name] = int64(pool.DeviceMemory)
		}
	}
	if memory == 0 {
		return
	}
	if len(p.Slices) > 1 {
		r.counts[noteSeveral]++
	}
	if claimed || out.Devices <= 1 {
		out.Devices, out.Share, out.DeviceMemory = 1, max(1, min(compute*demand.Whole/100, demand.Whole)), memory
	}
}

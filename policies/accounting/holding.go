package accounting

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// HoldingOf returns the charges of a pod while it lives: those of its Promise if it is trusted and accounts for the
// requested GPUs, else the whole devices that it requests. promised reports which.
func HoldingOf(k promise.Keys, pod *corev1.Pod, offered []pools.Pool) (h quota.Holding, promised bool) {
	p := PromiseThatAccounts(k, pod, offered)
	if p == nil {
		return Exclusive(pod, offered), false
	}
	return Holding(p, pod), true
}

// PromiseThatAccounts is Keys.PromiseOf where that accounts for the GPUs the pod requests, else nil: one that was copied onto another pod
// makes its devices no cheaper.
func PromiseThatAccounts(k promise.Keys, pod *corev1.Pod, offered []pools.Pool) *promise.Promise {
	p := k.PromiseOf(pod)
	if p == nil || !accountsFor(p, pod, offered) {
		return nil
	}
	return p
}

// accountsFor reports whether every GPU the pod requests is one that was promised. All else about a stored pod is left open: an
// earlier build may have applied the same Promise in other words.
func accountsFor(p *promise.Promise, pod *corev1.Pod, offered []pools.Pool) bool {
	for i := range p.Containers {
		c, _ := podspec.ContainerNamed(&pod.Spec, p.Containers[i].Name)
		if c == nil || !podedit.StillRequested(&p.Containers[i], c, offered) || !p.Containers[i].ClaimedBy(&pod.Spec) {
			return false
		}
	}
	return len(podedit.Unplanned(pod, p, offered)) == 0
}

// Holding returns the charges of a promised pod. The pod shows which containers end before others start.
func Holding(p *promise.Promise, pod *corev1.Pod) quota.Holding {
	h := quota.Holding{Namespace: p.Namespace, Pools: slices.Sorted(slices.Values(p.Pools)),
		Charge: ChargeOn(p, pod), Units: quotaUnits(pod, p), Traits: traitsOf(pod)}
	for i := range p.Containers {
		c := &p.Containers[i]
		h.MemoryUnknown = h.MemoryUnknown || c.Slice == 0
		if _, known := h.Classes[c.Class]; c.Class == "" || known {
			continue
		}
		if h.Classes == nil {
			h.Classes = make(map[string]quota.Charge)
		}
		spans := spansOf(&pod.Spec, func(in *corev1.Container) quota.Charge {
			if own := p.Container(in.Name); own != nil && own.Class == c.Class {
				return ChargeFor(p, own)
			}
			return quota.Charge{}
		})
		for i := range spans {
			spans[i].Init = spans[i].Init && c.Claim == "" // a claim is held as long as the pod lives
		}
		h.Classes[c.Class] = Peak(spans)
	}
	return h
}

// ChargeOn is the recorded charge, or more where the pod has the promised containers run side by side that ended one
// before the other when the Promise was made: one that was copied onto another pod is no cheaper than its containers.
func ChargeOn(p *promise.Promise, pod *corev1.Pod) quota.Charge {
	if p.Newer() {
		return p.Charge
	}
	return p.Charge.Most(Peak(spansOf(&pod.Spec, func(c *corev1.Container) quota.Charge { return ChargeFor(p, p.Container(c.Name)) })))
}

// ChargeFor returns the charge of a promised container; nil is charged nothing.
func ChargeFor(p *promise.Promise, c *promise.Container) quota.Charge {
	if c == nil {
		return quota.Charge{}
	}
	devices := c.Devices
	if devices == 0 { // an earlier build did not record them
		devices = quantity.Device.Times(c.GPUs())
	}
	return OfSlice(strategies.Named(p.Strategy).Whole(), max(c.Slice, c.Charged), c.GPUs(), devices)
}

// Exclusive returns the charges of a pod of which only the names of its GPU resources are known: that many whole
// devices. A resource that is, or may turn out to be, a share or a MIG instance counts as a slice as well, so that
// leaving the Promise out never makes a pod cheaper. Containers count whatever their names.
func Exclusive(pod *corev1.Pod, offered []pools.Pool) quota.Holding {
	h := quota.Holding{Namespace: pod.Namespace}
	h.Charge = Peak(spansOf(&pod.Spec, func(c *corev1.Container) quota.Charge { return exclusiveCharge(&h, c, offered) }))
	if h.Charge == (quota.Charge{}) {
		return quota.Holding{Namespace: pod.Namespace}
	}
	slices.Sort(h.Pools)
	h.Pools = slices.Compact(h.Pools)
	claimed, _ := promise.Decode(pod.Annotations[api.AnnotationPromise])
	h.Units, h.Traits = quotaUnits(pod, claimed), traitsOf(pod)
	return h
}

// exclusiveCharge charges one container, and notes in h the pools that offer what it names.
func exclusiveCharge(h *quota.Holding, c *corev1.Container, offered []pools.Pool) quota.Charge {
	var out quota.Charge
	for name, units := range gpuUnits(c, offered) {
		offering := offeredBy(name, offered)
		memory, known := largestDevice(offering)
		for _, p := range offering {
			h.Pools = append(h.Pools, p.Name)
		}
		h.MemoryUnknown = h.MemoryUnknown || !known
		charge := OfSlice(true, memory, units, quantity.Device.Times(units))
		if name != api.ResourceGPU || slices.ContainsFunc(offering, divided) {
			charge.Slices = units
		}
		out = out.Plus(charge)
	}
	return out
}

// WithoutSlice returns the charge of a pod without a slice in the pools of its node: whole devices, and of a shared one
// the part of each unit. pool is the first pool that offers a requested resource; "": none is known. Authors may make
// names up: one that no pool offers is not returned.
func WithoutSlice(pod *corev1.Pod, offered []pools.Pool) (c quota.Charge, pool, resource string) {
	c = Peak(spansOf(&pod.Spec, func(in *corev1.Container) (out quota.Charge) {
		units := gpuUnits(in, offered)
		for _, name := range slices.Sorted(maps.Keys(units)) {
			memory, share := quantity.MiB(0), quantity.Device
			offering := offeredBy(name, offered)
			for _, p := range offering {
				if p.HasNode(pod.Spec.NodeName) {
					memory, share, pool = p.Total()/quantity.MiB(max(p.Replicas, 1)), p.Share(0), cmp.Or(pool, p.Name)
					break
				}
			}
			if len(offering) > 0 || name == api.ResourceGPU {
				resource = cmp.Or(resource, name)
			}
			out = out.Plus(OfSlice(true, memory, units[name], share.Times(units[name])))
		}
		return out
	}))
	return c, pool, resource
}

// divided reports whether a unit of the pool's resource is less than a device.
func divided(p *pools.Pool) bool { return p.Strategy != "" && !p.Sharing().Whole() }

// offeredBy are the pools whose nodes advertise the resource.
func offeredBy(resource string, offered []pools.Pool) (out []*pools.Pool) {
	for i := range offered {
		if offered[i].Resource == resource {
			out = append(out, &offered[i])
		}
	}
	return out
}

// largestDevice returns the most memory that one unit can turn out to hold on any of the pools; known is false if a
// pool does not specify it, or if there is none.
func largestDevice(offered []*pools.Pool) (memory quantity.MiB, known bool) {
	known = len(offered) > 0
	for _, p := range offered {
		memory, known = max(memory, p.Total()), known && p.Total() > 0
	}
	return memory, known
}

// gpuUnits is how many units a container requests of each GPU resource.
func gpuUnits(c *corev1.Container, offered []pools.Pool) map[string]int64 {
	units := make(map[string]int64)
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if n := quantity.WholeUnits(q); n > 0 && pools.IsGPU(string(name), offered) {
				units[string(name)] = max(units[string(name)], n)
			}
		}
	}
	return units
}

package promise

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/charges"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// HoldingOf is what a pod holds while it lives: what its Promise recorded, where it has one that is to be trusted and
// that accounts for the GPUs it requests; else the whole devices that it requests. promised tells which.
func (k Keys) HoldingOf(pod *corev1.Pod, pools []pools.Pool) (h quota.Holding, promised bool) {
	p := k.PromiseThatAccounts(pod, pools)
	if p == nil {
		return ExclusiveHolding(pod, pools), false
	}
	return p.Holding(pod), true
}

// PromiseThatAccounts is PromiseOf where that accounts for the GPUs the pod requests, else nil: one that was copied onto another pod
// makes its devices no cheaper.
func (k Keys) PromiseThatAccounts(pod *corev1.Pod, pools []pools.Pool) *Promise {
	p := k.PromiseOf(pod)
	if p == nil || !p.accountsFor(pod, pools) {
		return nil
	}
	return p
}

// accountsFor reports whether every GPU the pod requests is one that was promised. All else about a stored pod is left open: an
// earlier build may have applied the same Promise in other words.
func (p *Promise) accountsFor(pod *corev1.Pod, pools []pools.Pool) bool {
	for i := range p.Containers {
		c, _ := podspec.ContainerNamed(&pod.Spec, p.Containers[i].Name)
		if c == nil || !p.Containers[i].stillRequested(c, pools) || !p.Containers[i].claimedBy(&pod.Spec) {
			return false
		}
	}
	return len(unplannedContainers(pod, p, pools)) == 0
}

// Holding is what the Promise's pod holds. The pod says which containers end before others start.
func (p *Promise) Holding(pod *corev1.Pod) quota.Holding {
	h := quota.Holding{Namespace: p.Namespace, Pools: slices.Sorted(slices.Values(p.Pools)), Charge: p.ChargeOn(pod), Units: quotaUnits(pod, p), Traits: charges.TraitsOf(pod)}
	for i := range p.Containers {
		c := &p.Containers[i]
		h.MemoryUnknown = h.MemoryUnknown || c.Slice == 0
		if _, known := h.Classes[c.Class]; c.Class == "" || known {
			continue
		}
		if h.Classes == nil {
			h.Classes = make(map[string]quota.Charge)
		}
		spans := charges.SpansOf(&pod.Spec, func(in *corev1.Container) quota.Charge { return p.chargeIn(c.Class, in.Name) })
		for i := range spans {
			spans[i].Init = spans[i].Init && c.Claim == "" // a claim is held as long as the pod lives
		}
		h.Classes[c.Class] = charges.Peak(spans)
	}
	return h
}

// ChargeOn is the recorded charge, or more where the pod has the promised containers run side by side that ended one
// before the other when the Promise was made: one that was copied onto another pod is no cheaper than its containers.
func (p *Promise) ChargeOn(pod *corev1.Pod) quota.Charge {
	if p.Newer() {
		return p.Charge
	}
	return p.Charge.Most(charges.Peak(charges.SpansOf(&pod.Spec, func(c *corev1.Container) quota.Charge { return p.ChargeFor(p.Container(c.Name)) })))
}

// chargeIn is what the named container counts for in a class.
func (p *Promise) chargeIn(class, container string) quota.Charge {
	if c := p.Container(container); c != nil && c.Class == class {
		return p.ChargeFor(c)
	}
	return quota.Charge{}
}

// ChargeFor is what a promised container counts for; nil counts for nothing.
func (p *Promise) ChargeFor(c *Container) quota.Charge {
	if c == nil {
		return quota.Charge{}
	}
	devices := c.Devices
	if devices == 0 { // an earlier build did not record them
		devices = quantity.Device.Times(c.GPUs())
	}
	return charges.OfSlice(strategies.Named(p.Strategy).Whole(), max(c.Slice, c.Charged), c.GPUs(), devices)
}

// ExclusiveHolding is what a pod holds when nothing is known of it but the GPU resources it names: that many whole
// devices. A resource that is, or may turn out to be, a share or a MIG instance counts as a slice as well, so that leaving
// the Promise out never makes a pod cheaper. Containers count whatever their names.
func ExclusiveHolding(pod *corev1.Pod, pools []pools.Pool) quota.Holding {
	h := quota.Holding{Namespace: pod.Namespace}
	h.Charge = charges.Peak(charges.SpansOf(&pod.Spec, func(c *corev1.Container) quota.Charge { return exclusiveCharge(&h, c, pools) }))
	if h.Charge == (quota.Charge{}) {
		return quota.Holding{Namespace: pod.Namespace}
	}
	slices.Sort(h.Pools)
	h.Pools = slices.Compact(h.Pools)
	claimed, _ := Decode(pod.Annotations[api.AnnotationPromise])
	h.Units, h.Traits = quotaUnits(pod, claimed), charges.TraitsOf(pod)
	return h
}

// exclusiveCharge charges one container, and notes in h the pools that offer what it names.
func exclusiveCharge(h *quota.Holding, c *corev1.Container, pools []pools.Pool) quota.Charge {
	var out quota.Charge
	for name, units := range gpuUnits(c, pools) {
		offering := offeredBy(name, pools)
		memory, known := largestDevice(offering)
		for _, p := range offering {
			h.Pools = append(h.Pools, p.Name)
		}
		h.MemoryUnknown = h.MemoryUnknown || !known
		charge := charges.OfSlice(true, memory, units, quantity.Device.Times(units))
		if name != api.ResourceGPU || slices.ContainsFunc(offering, divided) {
			charge.Slices = units
		}
		out = out.Plus(charge)
	}
	return out
}

// WithoutSlice is what a pod without a slice takes of the pools of its node: whole devices, and of a shared one the part that each
// unit is. pool is the first that offers what it names, and resource that name; "": none is known.
// Authors may make names up: one that no pool offers is not returned.
func WithoutSlice(pod *corev1.Pod, pools []pools.Pool) (c quota.Charge, pool, resource string) {
	c = charges.Peak(charges.SpansOf(&pod.Spec, func(in *corev1.Container) (out quota.Charge) {
		units := gpuUnits(in, pools)
		for _, name := range slices.Sorted(maps.Keys(units)) {
			memory, share := quantity.MiB(0), quantity.Device
			offering := offeredBy(name, pools)
			for _, p := range offering {
				if p.HasNode(pod.Spec.NodeName) {
					memory, share, pool = p.Total()/quantity.MiB(max(p.Replicas, 1)), p.Share(0), cmp.Or(pool, p.Name)
					break
				}
			}
			if len(offering) > 0 || name == api.ResourceGPU {
				resource = cmp.Or(resource, name)
			}
			out = out.Plus(charges.OfSlice(true, memory, units[name], share.Times(units[name])))
		}
		return out
	}))
	return c, pool, resource
}

// divided reports whether a unit of the pool's resource is less than a device.
func divided(p *pools.Pool) bool { return p.Strategy != "" && !p.Sharing().Whole() }

// offeredBy are the pools whose nodes advertise the resource.
func offeredBy(resource string, pools []pools.Pool) (out []*pools.Pool) {
	for i := range pools {
		if pools[i].Resource == resource {
			out = append(out, &pools[i])
		}
	}
	return out
}

// largestDevice is the most memory that one unit can turn out to hold on any of the pools; known is false where one of
// them does not tell, or there is none.
func largestDevice(pools []*pools.Pool) (memory quantity.MiB, known bool) {
	known = len(pools) > 0
	for _, p := range pools {
		memory, known = max(memory, p.Total()), known && p.Total() > 0
	}
	return memory, known
}

// gpuUnits is how many units a container requests of each GPU resource.
func gpuUnits(c *corev1.Container, pools []pools.Pool) map[string]int64 {
	units := make(map[string]int64)
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if n := quantity.WholeUnits(q); n > 0 && request.IsGPUResource(string(name), pools) {
				units[string(name)] = max(units[string(name)], n)
			}
		}
	}
	return units
}

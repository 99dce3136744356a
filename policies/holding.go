package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ChargeSource says what a pod's holding was taken from.
type ChargeSource string

// The sources of a holding.
const (
	ChargeNone      ChargeSource = "none"      // the pod asks for no GPU
	ChargePromise   ChargeSource = "promise"   // what it was given when it was planned
	ChargeExclusive ChargeSource = "exclusive" // it has no Promise: the devices that it asks for, whole
)

// HoldingOf is what a pod holds while it lives: what its Promise recorded, where it has one that is to be trusted and
// that accounts for the GPUs it asks for; else the whole devices that it asks for.
func HoldingOf(pod *corev1.Pod, keys Keys, pools []Pool) (Holding, ChargeSource) {
	p := keys.PromiseOf(pod)
	if p == nil || !p.accountsFor(pod, pools) {
		return ExclusiveHolding(pod, pools)
	}
	return p.Holding(pod), ChargePromise
}

// accountsFor says that every GPU the pod asks for is one that was promised. All else about a stored pod is left open: an
// earlier build may have applied the same Promise in other words.
func (p *Promise) accountsFor(pod *corev1.Pod, pools []Pool) bool {
	for i := range p.Containers {
		c, _ := containerNamed(&pod.Spec, p.Containers[i].Name)
		if c == nil || !p.Containers[i].stillRequested(c, pools) {
			return false
		}
	}
	return len(unplannedContainers(pod, p, pools)) == 0
}

// Holding is what the Promise's pod holds. The pod says which containers end before others start.
func (p *Promise) Holding(pod *corev1.Pod) Holding {
	h := Holding{Namespace: p.Namespace, Pools: slices.Sorted(slices.Values(p.Pools)), Charge: p.chargeOn(pod), Units: quotaUnits(pod, p), Traits: traitsOf(pod)}
	for i := range p.Containers {
		c := &p.Containers[i]
		h.MemoryUnknown = h.MemoryUnknown || c.Slice == 0
		if _, known := h.Classes[c.Class]; c.Class == "" || known {
			continue
		}
		if h.Classes == nil {
			h.Classes = make(map[string]Charge)
		}
		h.Classes[c.Class] = peakCharge(podSpans(&pod.Spec, func(in *corev1.Container) Charge { return p.chargeIn(c.Class, in.Name) }))
	}
	return h
}

// chargeOn is the recorded charge, or more where the pod has the promised containers run side by side that ended one
// before the other when the Promise was made: one that was copied onto another pod is no cheaper than its containers.
func (p *Promise) chargeOn(pod *corev1.Pod) Charge {
	if p.Newer() {
		return p.Charge
	}
	return p.Charge.Most(peakCharge(podSpans(&pod.Spec, func(c *corev1.Container) Charge { return p.chargeFor(p.container(c.Name)) })))
}

// chargeIn is what the named container counts for in a class.
func (p *Promise) chargeIn(class, container string) Charge {
	if c := p.container(container); c != nil && c.Class == class {
		return p.chargeFor(c)
	}
	return Charge{}
}

// chargeFor is what a promised container counts for; nil counts for nothing.
func (p *Promise) chargeFor(c *PromisedContainer) Charge {
	if c == nil {
		return Charge{}
	}
	return sliceCharge(strategyNamed(p.Strategy).Whole(), c.Slice, c.Count)
}

// ExclusiveHolding is what a pod holds when nothing is known of it but the GPU resources it names: that many whole
// devices. A shared or MIG resource counts as a slice as well, so that leaving the Promise out never makes a pod
// cheaper. Containers count whatever their names.
func ExclusiveHolding(pod *corev1.Pod, pools []Pool) (Holding, ChargeSource) {
	h := Holding{Namespace: pod.Namespace}
	h.Charge = peakCharge(podSpans(&pod.Spec, func(c *corev1.Container) Charge { return exclusiveCharge(&h, c, pools) }))
	if h.Charge == (Charge{}) {
		return Holding{Namespace: pod.Namespace}, ChargeNone
	}
	slices.Sort(h.Pools)
	h.Pools = slices.Compact(h.Pools)
	claimed, _ := DecodePromise(pod.Annotations[AnnotationPromise])
	h.Units, h.Traits = quotaUnits(pod, claimed), traitsOf(pod)
	return h, ChargeExclusive
}

// exclusiveCharge charges one container, and notes in h the pools that offer what it names.
func exclusiveCharge(h *Holding, c *corev1.Container, pools []Pool) Charge {
	var out Charge
	for name, units := range gpuUnits(c, pools) {
		offering := offeredBy(name, pools)
		memory, known := largestDevice(offering)
		for _, p := range offering {
			h.Pools = append(h.Pools, p.Name)
		}
		h.MemoryUnknown = h.MemoryUnknown || !known
		charge := Charge{Memory: memoryOf(memory, units), GPUs: units}
		if name != ResourceGPU {
			charge.Slices = units
		}
		out = out.Plus(charge)
	}
	return out
}

// offeredBy are the pools whose nodes advertise the resource.
func offeredBy(resource string, pools []Pool) (out []*Pool) {
	for i := range pools {
		if pools[i].Resource == resource {
			out = append(out, &pools[i])
		}
	}
	return out
}

// largestDevice is the most memory that one unit can turn out to hold on any of the pools; known is false where one of
// them does not tell, or there is none.
func largestDevice(pools []*Pool) (memory MiB, known bool) {
	known = len(pools) > 0
	for _, p := range pools {
		memory, known = max(memory, p.Total()), known && p.Total() > 0
	}
	return memory, known
}

// gpuUnits is how many units a container asks for of each GPU resource.
func gpuUnits(c *corev1.Container, pools []Pool) map[string]int64 {
	units := make(map[string]int64)
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if n := wholeUnits(q); n > 0 && isGPUResource(string(name), pools) {
				units[string(name)] = max(units[string(name)], n)
			}
		}
	}
	return units
}

// wholeUnits is q rounded up, at most maxCharge. It looks at the exponent before it computes: stored pods may hold
// quantities such as 1e10000000, which cost seconds to compare and which Value() turns into 0.
func wholeUnits(q resource.Quantity) int64 {
	if q.Sign() <= 0 {
		return 0
	}
	if n, ok := q.AsInt64(); ok {
		return min(n, maxCharge)
	}
	const largestExponent, largestBits = 18, 127
	if d := q.AsDec(); d.Scale() < -largestExponent || d.UnscaledBig().BitLen() > largestBits {
		return maxCharge
	}
	if q.CmpInt64(maxCharge) >= 0 {
		return maxCharge
	}
	return q.Value()
}

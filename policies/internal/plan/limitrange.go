package plan

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Default requests of the guard's containers, and their limits on disk.
const (
	defaultGuardCPU     = "20m"
	defaultGuardMemory  = "64Mi"
	defaultGuardStorage = "16Mi"
)

// guardSizes are the requests and limits of each of the guard's containers. Storage is set if a LimitRange of the
// namespace limits it: its defaults do not reach containers that are added by a webhook.
type guardSizes struct{ cpu, memory, storage resource.Quantity }

// sizeGuard keeps the guard's containers within the namespace's LimitRanges. why is the reason why none can be.
func sizeGuard(in *Input) (sizes guardSizes, why string) {
	sizes.cpu, sizes.memory = sizeOr(in.Guard.CPU, defaultGuardCPU), sizeOr(in.Guard.Memory, defaultGuardMemory)
	for _, r := range in.LimitRanges {
		for i := range r.Spec.Limits {
			if item := &r.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
				why = cmp.Or(why, sizes.within(r.Name, item))
			}
		}
	}
	return sizes, why
}

// sizeOr reads a setting. The webhook validates it; the command line takes it as it stands in the Deployment.
func sizeOr(setting, otherwise string) resource.Quantity {
	if q, err := resource.ParseQuantity(cmp.Or(setting, otherwise)); err == nil {
		return q
	}
	return resource.MustParse(otherwise)
}

// within raises the sizes to the least that an item allows, and returns why they are above the most.
func (g *guardSizes) within(name string, item *corev1.LimitRangeItem) (why string) {
	// A LimitRange on ephemeral storage denies containers that request none.
	if least, most := item.Min.StorageEphemeral(), item.Max.StorageEphemeral(); g.storage.IsZero() && (!least.IsZero() || !most.IsZero()) {
		g.storage = resource.MustParse(defaultGuardStorage)
	}
	var above [3]string
	g.cpu, above[0] = clamped(name, item, corev1.ResourceCPU, g.cpu)
	g.memory, above[1] = clamped(name, item, corev1.ResourceMemory, g.memory)
	g.storage, above[2] = clamped(name, item, corev1.ResourceEphemeralStorage, g.storage)
	return cmp.Or(above[:]...)
}

// clamped is the size raised to the least that an item allows, and why it is above the most.
func clamped(name string, item *corev1.LimitRangeItem, of corev1.ResourceName,
	size resource.Quantity) (raised resource.Quantity, why string) {
	if least, held := item.Min[of]; held && size.Cmp(least) < 0 {
		size = least
	}
	if most, held := item.Max[of]; held && size.Cmp(most) > 0 {
		why = fmt.Sprintf("LimitRange %s allows a container at most %s of %s, and the guard needs %s", name, most.String(), of, size.String())
	}
	return size, why
}

package plan

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/pools"
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

// sizeGuard keeps the guard's containers within the namespace's LimitRanges and the pod's own resources; sidecar reports whether one of
// them runs beside the pod's. why is the reason why none can be.
func sizeGuard(in *Input, sidecar bool) (sizes guardSizes, why string) {
	sizes.cpu, sizes.memory = sizeOr(in.Guard.CPU, defaultGuardCPU), sizeOr(in.Guard.Memory, defaultGuardMemory)
	for r, item := range limitItems(in, corev1.LimitTypeContainer) {
		why = cmp.Or(why, sizes.within(r, item))
		if name := gpuAmong(in, item); name != "" {
			why = cmp.Or(why, fmt.Sprintf("LimitRange %s limits %s, and the guard requests none", r, name))
		}
	}
	return sizes, cmp.Or(why, sizes.beside(in, sidecar))
}

// limitItems are the items of a type of the namespace's LimitRanges, by their names.
func limitItems(in *Input, of corev1.LimitType) iter.Seq2[string, *corev1.LimitRangeItem] {
	return func(yield func(string, *corev1.LimitRangeItem) bool) {
		for _, r := range in.LimitRanges {
			for i := range r.Spec.Limits {
				if item := &r.Spec.Limits[i]; item.Type == of && !yield(r.Name, item) {
					return
				}
			}
		}
	}
}

// gpuAmong is a GPU resource that the item limits; "": none.
func gpuAmong(in *Input, item *corev1.LimitRangeItem) string {
	for _, list := range []corev1.ResourceList{item.Max, item.Min} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if pools.IsGPU(string(name), in.Pools) {
				return string(name)
			}
		}
	}
	return ""
}

// ruledOut is the denial of a candidate that gives containers another GPU resource than a LimitRange limits: Kubernetes denies
// containers, or pods, that name none of a resource that is limited.
func ruledOut(in *Input, c *candidate) *api.Violation {
	for _, of := range []corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod} {
		for r, item := range limitItems(in, of) {
			name := gpuAmong(in, item)
			named := func(p placed) bool { return p.pool.Resource == name }
			others := slices.ContainsFunc(c.containers, func(p placed) bool { return !named(p) })
			if name == "" || !others || of == corev1.LimitTypePod && slices.ContainsFunc(c.containers, named) {
				continue
			}
			return &api.Violation{Rule: api.RuleFit, Reason: "a LimitRange rules out the slice", Detail: fmt.Sprintf(
				"LimitRange %s limits %s of a %s, and Kubernetes denies one that names none, such as that of a slice of %s; "+
					"name no GPU in max and min of the LimitRange, and limit them by policy or by a ResourceQuota", r, name,
				strings.ToLower(string(of)), c.pool().Offer())}
		}
	}
	return nil
}

// beside returns why the guard's containers do not fit what the pod, or a LimitRange of the type Pod, allows all containers together.
func (g *guardSizes) beside(in *Input, sidecar bool) string {
	level := in.Pod.Spec.Resources
	if level == nil && !slices.ContainsFunc(in.LimitRanges, func(r *corev1.LimitRange) bool {
		return slices.ContainsFunc(r.Spec.Limits, func(item corev1.LimitRangeItem) bool { return item.Type == corev1.LimitTypePod })
	}) {
		return ""
	}
	with := g.added(in.Pod, sidecar)
	if level != nil {
		requests := helpers.AggregateContainerRequests(with, helpers.PodResourcesOptions{})
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			most, set := level.Requests[name]
			if !set {
				most, set = level.Limits[name]
			}
			if needed := requests[name]; set && needed.Cmp(most) > 0 {
				return fmt.Sprintf("the pod requests %s of %s for all its containers together (spec.resources), and with the guard they need %s",
					most.String(), name, needed.String())
			}
		}
	}
	limits := helpers.PodLimits(with, helpers.PodResourcesOptions{})
	for r, item := range limitItems(in, corev1.LimitTypePod) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
			most, set := item.Max[name]
			if needed := limits[name]; set && needed.Cmp(most) > 0 {
				return fmt.Sprintf("LimitRange %s allows a pod at most %s of %s, and with the guard it needs %s", r, most.String(), name, needed.String())
			}
		}
	}
	return ""
}

// added is the pod with containers of the guard's sizes. The server takes a container's limit for the request that it does not name.
func (g *guardSizes) added(pod *corev1.Pod, sidecar bool) *corev1.Pod {
	out := &corev1.Pod{Spec: corev1.PodSpec{Resources: pod.Spec.Resources, Overhead: pod.Spec.Overhead}}
	amounts := corev1.ResourceList{corev1.ResourceCPU: g.cpu, corev1.ResourceMemory: g.memory}
	if !g.storage.IsZero() {
		amounts[corev1.ResourceEphemeralStorage] = g.storage
	}
	own := corev1.Container{Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts}}
	out.Spec.InitContainers = append(out.Spec.InitContainers, own)
	if sidecar {
		own.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		out.Spec.InitContainers = append(out.Spec.InitContainers, own)
	}
	for c, init := range podspec.Containers(&pod.Spec) {
		needed := maps.Clone(c.Resources.Limits)
		if needed == nil {
			needed = corev1.ResourceList{}
		}
		maps.Copy(needed, c.Resources.Requests)
		one := corev1.Container{RestartPolicy: c.RestartPolicy,
			Resources: corev1.ResourceRequirements{Requests: needed, Limits: c.Resources.Limits}}
		if init {
			out.Spec.InitContainers = append(out.Spec.InitContainers, one)
		} else {
			out.Spec.Containers = append(out.Spec.Containers, one)
		}
	}
	return out
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

package accounting

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// PodClaims are the GPUs that a pod claims by dynamic resource allocation.
type PodClaims struct {
	DeviceClasses
	Pod *corev1.Pod
	// Claims are the specs of the pod's claims, by the pod's name for each. A claim that is not listed may be a GPU.
	Claims map[string]*resourcev1.ResourceClaimSpec
}

// claimedGPUs is one way in which a pod claims GPUs.
type claimedGPUs struct {
	what      string
	count     int64
	container *corev1.Container // that names it as an extended resource; nil: the pod claims it
}

// Holding is h with the GPUs that the pod claims: whole devices of which nothing else is known, and which may be slices of
// any pool. Claims that are given, by a Promise that is to be trusted, are counted in h.
func (p PodClaims) Holding(h quota.Holding, given *promise.Promise) quota.Holding {
	n := countClaimed(p.Pod, p.claimedGPUs(p.asPromised(given)))
	if n == 0 {
		return h
	}
	out := h.Plus(quota.Holding{Charge: quota.Charge{Slices: n, GPUs: n, Devices: quantity.Device.Times(n)}, MemoryUnknown: true})
	for i := range p.Pools {
		out.Pools = append(out.Pools, p.Pools[i].Name)
	}
	slices.Sort(out.Pools)
	out.Pools, out.Traits = slices.Compact(out.Pools), traitsOf(p.Pod)
	return out
}

// Total is all that the pod holds: its slice by the Promise, or for nil the devices that it requests, and the GPUs that it claims.
func (p PodClaims) Total(given *promise.Promise) quota.Holding {
	if given == nil {
		return p.Holding(Exclusive(p.Pod, p.Pools), nil)
	}
	return p.Holding(Holding(given, p.Pod), given)
}

// Claimed lists, sorted, the ways in which the pod claims GPUs beside its slices.
func (p PodClaims) Claimed(given *promise.Promise) []string {
	return p.Taken(p.asPromised(given))
}

// asPromised are the promised claims, without those that the pod replaced by others. Until Kubernetes has made a claim,
// gpuslice may still rewrite the template of that name.
func (p PodClaims) asPromised(given *promise.Promise) func(*corev1.PodResourceClaim) bool {
	return func(c *corev1.PodResourceClaim) bool {
		spec := p.Claims[c.Name]
		return given.HasClaim(c) && (spec == nil || !podspec.HasClaimMade(p.Pod, c.Name) || !claims.Lies(*c.ResourceClaimTemplateName, spec))
	}
}

// Taken lists, sorted, the ways in which the pod claims GPUs, without the claims that are ours.
func (p PodClaims) Taken(ours func(*corev1.PodResourceClaim) bool) []string {
	return ways(p.claimedGPUs(ours))
}

// TakenByClaims is Taken without the extended resources of containers.
func (p PodClaims) TakenByClaims(ours func(*corev1.PodResourceClaim) bool) []string {
	return ways(slices.DeleteFunc(p.claimedGPUs(ours), func(c claimedGPUs) bool { return c.container != nil }))
}

func ways(claimed []claimedGPUs) (found []string) {
	for _, c := range claimed {
		found = append(found, c.what)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// claimedGPUs lists the GPUs that the pod claims, without the claims that are gpuslice's. The names by which a device plugin offers
// GPUs are none of them.
func (p PodClaims) claimedGPUs(ours func(*corev1.PodResourceClaim) bool) []claimedGPUs {
	var out []claimedGPUs
	for i := range p.Pod.Spec.ResourceClaims {
		if c := &p.Pod.Spec.ResourceClaims[i]; !ours(c) {
			out = append(out, p.inClaim(c.Name)...)
		}
	}
	for c := range podspec.EveryContainer(&p.Pod.Spec) {
		units := map[string]int64{}
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				units[string(name)] = max(units[string(name)], quantity.WholeUnits(q))
			}
		}
		for name, n := range units {
			if class := p.classOf(name); n > 0 && class != "" && p.isGPUClass(class) {
				out = append(out, claimedGPUs{fmt.Sprintf("%s of container %q takes devices of class %s", name, c.Name, class), n, c})
			}
		}
	}
	return out
}

// inClaim lists the GPUs that one claim of the pod takes. An unknown claim counts as the most that a claim can take.
func (p PodClaims) inClaim(name string) []claimedGPUs {
	spec := p.Claims[name]
	if spec == nil {
		return []claimedGPUs{{fmt.Sprintf("claim %q, may take a GPU, since its ResourceClaim or template is not found (create that first)", name),
			resourcev1.AllocationResultsMaxSize, nil}}
	}
	var out []claimedGPUs
	for _, r := range spec.Devices.Requests {
		class, n := p.requested(r)
		if n > 0 {
			out = append(out, claimedGPUs{fmt.Sprintf("claim %q takes devices of class %s", name, class), n, nil})
		}
	}
	return out
}

// countClaimed returns how many claimed GPUs the pod holds: claims for its whole life, extended resources as long as
// containers run.
func countClaimed(pod *corev1.Pod, claimed []claimedGPUs) (n int64) {
	in := map[*corev1.Container]int64{}
	for _, c := range claimed {
		if c.container == nil {
			n = quantity.Sum(n, c.count)
		} else {
			in[c.container] = quantity.Sum(in[c.container], c.count)
		}
	}
	peak := Peak(spansOf(&pod.Spec, func(c *corev1.Container) quota.Charge { return quota.Charge{GPUs: in[c]} }))
	return quantity.Sum(n, peak.GPUs)
}

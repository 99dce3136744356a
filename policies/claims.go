package policies

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/charges"
	"github.com/gpuslice/gpuslice/policies/internal/claimtemplate"
	"github.com/gpuslice/gpuslice/policies/internal/deviceclass"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/resourcename"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// claimedGPUs is one way in which a pod claims GPUs.
type claimedGPUs struct {
	what      string
	count     int64
	container *corev1.Container // that names it as an extended resource; nil: the pod claims it
}

// HoldingWithClaims is what the pod holds with the GPUs that it claims: whole devices of which nothing else is known, and
// which may be slices of any pool. Claims that are given, by a Promise that is to be trusted, are counted in h.
func (in Input) HoldingWithClaims(h quota.Holding, given *promise.Promise) quota.Holding {
	n := countClaimed(in.Pod, in.claimedGPUs(in.asPromised(given)))
	if n == 0 {
		return h
	}
	out := h.Plus(quota.Holding{Charge: quota.Charge{Slices: n, GPUs: n, Devices: quantity.Device.Times(n)}, MemoryUnknown: true})
	for i := range in.Pools {
		out.Pools = append(out.Pools, in.Pools[i].Name)
	}
	slices.Sort(out.Pools)
	out.Pools, out.Traits = slices.Compact(out.Pools), charges.TraitsOf(in.Pod)
	return out
}

// ClaimTemplates are gpuslice's templates that the pod names, as its namespace has to have them.
func (in Input) ClaimTemplates() []*resourcev1.ResourceClaimTemplate {
	return claimtemplate.Named(in.Pod)
}

// NamesSlice reports whether a template of the name is one of gpuslice's.
func NamesSlice(template string) bool {
	_, err := claimtemplate.Parse(template)
	return err == nil
}

// ClaimProblem is why a claim, or the template of that name, is no slice of gpuslice's although it takes GPUs; "": it is one, or takes none.
func (in Input) ClaimProblem(template string, spec *resourcev1.ResourceClaimSpec) string {
	if claimtemplate.Lies(template, spec) {
		return "asks for something else than its name says"
	}
	for _, r := range spec.Devices.Requests {
		if class, n := in.requested(r); n > 0 && !claimtemplate.IsSlice(spec) {
			return fmt.Sprintf("takes devices of class %s, which no slice bounds", class)
		}
	}
	return ""
}

// checkClaims denies a pod that claims GPUs where policy says so, and one that claims a slice itself: it would be one that nobody
// looks at. Those that ours lists are gpuslice's.
func checkClaims(in *Input, ours func(*corev1.PodResourceClaim) bool) []api.Violation {
	if len(in.Pod.Spec.ResourceClaims) > 0 {
		if v := in.claimsSlice(ours); v != nil {
			return []api.Violation{*v}
		}
	}
	if in.Policy.Claims != modes.ClaimsDeny {
		return nil
	}
	found := described(in.claimedGPUs(ours))
	if len(found) == 0 {
		return nil
	}
	return []api.Violation{{Rule: api.RulePolicy, Reason: "GPUs by a claim", Detail: fmt.Sprintf(
		"%s, and policy %s denies claims of GPUs; remove it, and write %s: 1 and the label %s: \"8Gi\" (or what the pod needs)",
		message.ShortList(found), in.Policy.Name, api.ResourceGPU, api.LabelMemory)}}
}

// claimsSlice denies a template of gpuslice's that the author names, and the claim of another pod's slice: both guards would allow all of it.
func (in *Input) claimsSlice(ours func(*corev1.PodResourceClaim) bool) *api.Violation {
	for i := range in.Pod.Spec.ResourceClaims {
		c := &in.Pod.Spec.ResourceClaims[i]
		if c.ResourceClaimName != nil && !ours(c) && claimtemplate.IsSlice(in.Claims[c.Name]) {
			return &api.Violation{Rule: api.RulePolicy, Reason: "another pod's claim", Detail: fmt.Sprintf(
				"ResourceClaim %s is a slice, and no pods share one; remove it, and write %s: 1 and the label %s: \"8Gi\" (or what the pod needs)",
				message.Quote(*c.ResourceClaimName), api.ResourceGPU, api.LabelMemory)}
		}
		if c.ResourceClaimTemplateName == nil || ours(c) {
			continue
		}
		if t, err := claimtemplate.Parse(*c.ResourceClaimTemplateName); err == nil {
			return &api.Violation{Rule: api.RulePolicy, Reason: "a slice by a claim of the pod's own", Detail: fmt.Sprintf(
				"claim %q names template %s, and such claims are written by gpuslice alone; remove it, and write %s: 1 and the label %s: %q",
				c.Name, *c.ResourceClaimTemplateName, api.ResourceGPU, api.LabelMemory, t.Memory)}
		}
	}
	return nil
}

// writtenAnew are the claims that a pod brings which has, or will have, a slice: what has gpuslice's names is taken off it first.
func writtenAnew(c *corev1.PodResourceClaim) bool { return podspec.IsOurClaim(c.Name) }

// claimsUnsliced is what the claims are denied for of a pod that gets no slice: nothing is taken off it.
func claimsUnsliced(in *Input) []api.Violation {
	if !slices.ContainsFunc(in.Pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return writtenAnew(&c) }) {
		return nil
	}
	return checkClaims(in, func(*corev1.PodResourceClaim) bool { return false })
}

// Claimed says of each way in which the pod claims GPUs what it takes beside what it was given, sorted.
func (in Input) Claimed(given *promise.Promise) []string {
	return described(in.claimedGPUs(in.asPromised(given)))
}

// asPromised are the claims that were given, without those of which the pod got another in place of its own. Until Kubernetes has made it,
// the template of that name may still be one that gpuslice writes anew.
func (in *Input) asPromised(given *promise.Promise) func(*corev1.PodResourceClaim) bool {
	return func(c *corev1.PodResourceClaim) bool {
		spec := in.Claims[c.Name]
		return given.HasClaim(c) && (spec == nil || !podspec.HasClaimMade(in.Pod, c.Name) || !claimtemplate.Lies(*c.ResourceClaimTemplateName, spec))
	}
}

func described(claimed []claimedGPUs) (found []string) {
	for _, c := range claimed {
		found = append(found, c.what)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// claimedGPUs lists the GPUs that the pod claims, without the claims that are gpuslice's. The names by which a device plugin offers
// GPUs are none of them.
func (in *Input) claimedGPUs(ours func(*corev1.PodResourceClaim) bool) []claimedGPUs {
	var out []claimedGPUs
	for i := range in.Pod.Spec.ResourceClaims {
		if c := &in.Pod.Spec.ResourceClaims[i]; !ours(c) {
			out = append(out, in.inClaim(c.Name)...)
		}
	}
	for c := range podspec.EveryContainer(&in.Pod.Spec) {
		units := map[string]int64{}
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				units[string(name)] = max(units[string(name)], quantity.WholeUnits(q))
			}
		}
		for name, n := range units {
			if class := in.classOf(name); n > 0 && class != "" && in.isGPUClass(class) {
				out = append(out, claimedGPUs{fmt.Sprintf("%s of container %q takes devices of class %s", name, c.Name, class), n, c})
			}
		}
	}
	return out
}

// inClaim lists what one claim of the pod takes. One that is not there may be made to take as much as a claim can.
func (in *Input) inClaim(name string) []claimedGPUs {
	spec := in.Claims[name]
	if spec == nil {
		return []claimedGPUs{{fmt.Sprintf("claim %q, may take a GPU, since its ResourceClaim or template is not found (create that first)", name), resourcev1.AllocationResultsMaxSize, nil}}
	}
	var out []claimedGPUs
	for _, r := range spec.Devices.Requests {
		class, n := in.requested(r)
		if n > 0 {
			out = append(out, claimedGPUs{fmt.Sprintf("claim %q takes devices of class %s", name, class), n, nil})
		}
	}
	return out
}

// requested is the GPUs of a request: of alternatives the one with most.
func (in *Input) requested(r resourcev1.DeviceRequest) (class string, n int64) {
	if e := r.Exactly; e != nil && in.isGPUClass(e.DeviceClassName) && (e.AdminAccess == nil || !*e.AdminAccess) {
		class, n = e.DeviceClassName, devices(e.AllocationMode, e.Count)
	}
	for _, s := range r.FirstAvailable {
		if count := devices(s.AllocationMode, s.Count); in.isGPUClass(s.DeviceClassName) && count > n {
			class, n = s.DeviceClassName, count
		}
	}
	return class, n
}

// devices is how many devices a request takes: all of a node are as many as a claim can hold.
func devices(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	if mode == resourcev1.DeviceAllocationModeAll {
		return resourcev1.AllocationResultsMaxSize
	}
	return max(count, 1)
}

// classOf is the device class that an extended resource stands for, or "".
func (in *Input) classOf(resource string) string {
	if class, ok := strings.CutPrefix(resource, resourcev1.ResourceDeviceClassPrefix); ok {
		return class
	}
	if request.IsGPUResource(resource, in.Pools) {
		return ""
	}
	for name, class := range in.DeviceClasses {
		if e := class.Spec.ExtendedResourceName; e != nil && *e == resource {
			return name
		}
	}
	return ""
}

// ExtendedNames are the names outside of NVIDIA's by which device classes of GPUs may be requested, in no order.
func (in Input) ExtendedNames() (names []string) {
	for class, spec := range in.DeviceClasses {
		if e := spec.Spec.ExtendedResourceName; e != nil && !strings.HasPrefix(*e, resourcename.NVIDIAPrefix) && in.isGPUClass(class) {
			names = append(names, *e)
		}
	}
	return names
}

// maxClosed bounds the text of ClosedClasses: namespaces carry it.
const maxClosed = 8 << 10

// ClosedClasses are the classes of which nobody claims devices in the namespace, where policy denies claims of GPUs: sorted and joined
// by commas, "*" for more than can be written; "": it denies none, or the cluster has no class of GPUs.
func (in Input) ClosedClasses() string {
	if in.Policy.Off() || in.Policy.Claims != modes.ClaimsDeny || in.Policy.EnforcementMode != api.EnforceFull {
		return ""
	}
	return in.gpuClasses()
}

// OpenClasses are, likewise, those of which pods may claim devices beside a quota or slices by claim; "": none.
func (in Input) OpenClasses() string {
	if in.Policy.Off() || in.Policy.Claims != modes.ClaimsCount || in.Policy.EnforcementMode != api.EnforceFull || !in.Policy.DependsOnClaims() {
		return ""
	}
	return in.gpuClasses()
}

// gpuClasses are the classes of GPUs, sorted and joined by commas, if the cluster has one.
func (in *Input) gpuClasses() string {
	var names []string
	for name := range in.DeviceClasses {
		if in.isGPUClass(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	names = append(append(names, resourcename.NVIDIADriver, claimtemplate.ClassInstances), in.Policy.DeviceClasses...)
	slices.Sort(names)
	if text := strings.Join(slices.Compact(names), ","); len(text) <= maxClosed {
		return text
	}
	return "*"
}

// isGPUClass reports whether devices of the class are GPUs, or may be: NVIDIA's own, those that policy lists, those that choose
// devices of NVIDIA's driver or of one that a pool is of, and those that choose among all devices or are not known.
func (in *Input) isGPUClass(name string) bool {
	class := in.DeviceClasses[name]
	if class == nil || name == resourcename.NVIDIADriver || name == claimtemplate.ClassInstances || slices.Contains(in.Policy.DeviceClasses, name) {
		return true
	}
	if e := class.Spec.ExtendedResourceName; e != nil && request.IsGPUResource(*e, in.Pools) {
		return true
	}
	text := deviceclass.Expressions(class)
	return len(class.Spec.Selectors) == 0 || strings.Contains(text, resourcename.NVIDIADriver) || slices.ContainsFunc(in.Pools, func(p pools.Pool) bool {
		return p.DeviceClass == name || p.DeviceDriver != "" && deviceclass.Quotes(text, p.DeviceDriver)
	})
}

// countClaimed is how many GPUs the pod holds of what it claims: claims for its whole life, extended resources as long as
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
	peak := charges.Peak(charges.SpansOf(&pod.Spec, func(c *corev1.Container) quota.Charge { return quota.Charge{GPUs: in[c]} }))
	return quantity.Sum(n, peak.GPUs)
}

package accounting

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// DeviceClasses are the DeviceClasses of a cluster, by name, as a policy and the pools read them: which are of GPUs.
type DeviceClasses struct {
	Policy  *config.Policy // that governs the namespace
	Pools   []pools.Pool
	Classes map[string]*resourcev1.DeviceClass
}

// ClaimProblem is why a claim, or the template of that name, is no slice of gpuslice's although it takes GPUs; "": it is one,
// or takes none.
func (d DeviceClasses) ClaimProblem(template string, spec *resourcev1.ResourceClaimSpec) string {
	if claims.Lies(template, spec) {
		return "requests something else than its name"
	}
	for _, r := range spec.Devices.Requests {
		if class, n := d.requested(r); n > 0 && !claims.IsSlice(spec) {
			return fmt.Sprintf("takes devices of class %s, which no slice bounds", class)
		}
	}
	return ""
}

// requested is the GPUs of a request: of alternatives the one with most.
func (d DeviceClasses) requested(r resourcev1.DeviceRequest) (class string, n int64) {
	if e := r.Exactly; e != nil && d.isGPUClass(e.DeviceClassName) && (e.AdminAccess == nil || !*e.AdminAccess) {
		class, n = e.DeviceClassName, devices(e.AllocationMode, e.Count)
	}
	for _, s := range r.FirstAvailable {
		if count := devices(s.AllocationMode, s.Count); d.isGPUClass(s.DeviceClassName) && count > n {
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
func (d DeviceClasses) classOf(resource string) string {
	if class, ok := strings.CutPrefix(resource, resourcev1.ResourceDeviceClassPrefix); ok {
		return class
	}
	if pools.IsGPU(resource, d.Pools) {
		return ""
	}
	for name, class := range d.Classes {
		if e := class.Spec.ExtendedResourceName; e != nil && *e == resource {
			return name
		}
	}
	return ""
}

// ExtendedNames are the names outside of NVIDIA's by which device classes of GPUs may be requested, in no order.
func (d DeviceClasses) ExtendedNames() (names []string) {
	for class, spec := range d.Classes {
		if e := spec.Spec.ExtendedResourceName; e != nil && !strings.HasPrefix(*e, nvidia.ResourcePrefix) && d.isGPUClass(class) {
			names = append(names, *e)
		}
	}
	return names
}

// maxClosed bounds the text of Closed: namespaces carry it.
const maxClosed = 8 << 10

// Closed are the classes of which nobody claims devices in the namespace, where policy denies claims of GPUs, or where pods with claims
// are admitted while no webhook answers: sorted and joined by commas, "*" for more than can be written; "": all may be claimed, or the
// cluster has no class of GPUs.
func (d DeviceClasses) Closed(ns api.Namespace) string {
	if d.Policy.Off() || ns.Labels[api.LabelFail] != api.FailOpenForClaims &&
		(d.Policy.Claims != modes.ClaimsDeny || d.Policy.EnforcementMode != api.EnforceFull) {
		return ""
	}
	return d.gpuClasses()
}

// Open are, likewise, those of which pods may claim devices beside a quota or slices by claim; "": none.
func (d DeviceClasses) Open() string {
	if d.Policy.Off() || d.Policy.Claims != modes.ClaimsCount || d.Policy.EnforcementMode != api.EnforceFull || !d.Policy.DependsOnClaims() {
		return ""
	}
	return d.gpuClasses()
}

// gpuClasses are the classes of GPUs, sorted and joined by commas, if the cluster has one.
func (d DeviceClasses) gpuClasses() string {
	var names []string
	for name := range d.Classes {
		if d.isGPUClass(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	names = append(append(names, nvidia.DRADriver, claims.ClassInstances), d.Policy.DeviceClasses...)
	slices.Sort(names)
	if text := strings.Join(slices.Compact(names), ","); len(text) <= maxClosed {
		return text
	}
	return "*"
}

// isGPUClass reports whether devices of the class are GPUs, or may be: NVIDIA's own, those that policy lists, those that choose
// devices of NVIDIA's driver or of one that a pool is of, and those that choose among all devices or are not known, but for NVIDIA's
// classes of channels.
func (d DeviceClasses) isGPUClass(name string) bool {
	class := d.Classes[name]
	switch {
	case name == nvidia.DRADriver, name == claims.ClassInstances, slices.Contains(d.Policy.DeviceClasses, name):
		return true
	case class == nil:
		return !slices.Contains(nvidia.ChannelClasses, name)
	}
	if e := class.Spec.ExtendedResourceName; e != nil && pools.IsGPU(*e, d.Pools) {
		return true
	}
	text := claims.ClassExpressions(class)
	return len(class.Spec.Selectors) == 0 || strings.Contains(text, nvidia.DRADriver) || slices.ContainsFunc(d.Pools, func(p pools.Pool) bool {
		return p.DeviceClass == name || p.DeviceDriver != "" && claims.Quotes(text, p.DeviceDriver)
	})
}

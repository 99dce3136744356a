package watcher

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Bounds on copies of a claim or a template: any tenant writes 1.3 MB of selectors into each of hundreds.
const (
	// bytes as Kubernetes stores them: of larger specs only classes and counts are kept. No template of gpuslice's is so large
	maxWholeSpec   = 2 << 10
	maxReducedSpec = 4 << 10 // of these
	maxRequests    = 64      // with their alternatives. A spec beyond these counts as all devices of a node
	maxUID         = 128
	// bytes of all claims. One that is not kept is read when a pod that names it is created, and counts as unknown afterwards
	maxClaims    = 64 << 20
	maxTemplates = 16 << 20  // likewise
	maxSlice     = 256 << 10 // bytes of a ResourceSlice. A larger one offers nothing
)

// classTooLarge is in place of the classes of a spec that is too large to be kept. No class has such a name, so that its devices count as
// GPUs; a denial names it.
const classTooLarge = "unknown, since its claim has more than 64 requests and alternatives or 4 KiB of class names"

// slimClaim drops fields that no decision reads.
func slimClaim(object runtime.Object) (runtime.Object, int) {
	switch o := object.(type) {
	case *resourcev1.DeviceClass:
		o.ManagedFields, o.Annotations, o.Spec.Config = nil, nil, nil
	case *resourcev1.ResourceSlice:
		pools.Source{}.Slim(o)
		if o.Size() > maxSlice {
			return nil, 0
		}
	case *resourcev1.ResourceClaim:
		kept := &resourcev1.ResourceClaim{ObjectMeta: slimMeta(o), Spec: slimSpec(o.Spec), Status: slimStatus(o.Status.Allocation)}
		return kept, claimSize + 4*kept.Size()
	case *resourcev1.ResourceClaimTemplate:
		kept := &resourcev1.ResourceClaimTemplate{ObjectMeta: slimMeta(o),
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: slimSpec(o.Spec.Spec)}}
		return kept, claimSize + 4*kept.Size()
	}
	return object, 0
}

// claimSize is about the memory of a claim beside its requests.
const claimSize = 2 << 10

// slimMeta keeps the names of a claim or template, its controller, and the label of gpuslice's templates.
func slimMeta(o metav1.Object) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), DeletionTimestamp: o.GetDeletionTimestamp()}
	if value, ok := o.GetLabels()[claims.LabelManagedBy]; ok {
		out.Labels = map[string]string{claims.LabelManagedBy: value}
	}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil && len(owner.UID) <= maxUID {
		out.OwnerReferences = []metav1.OwnerReference{{UID: owner.UID, Controller: owner.Controller}}
	}
	return out
}

// slimSpec keeps a spec as it is where it is small, else of each request how many devices of which class it takes.
func slimSpec(spec resourcev1.ResourceClaimSpec) resourcev1.ResourceClaimSpec {
	spec.Devices.Config = slices.Clone(spec.Devices.Config[:min(len(spec.Devices.Config), 1)])
	clear(spec.Devices.Config) // that there is some counts
	if spec.Size() <= maxWholeSpec {
		return spec
	}
	// A configuration, so that it is not taken for a slice.
	out := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Config: []resourcev1.DeviceClaimConfiguration{{}}}}
	requests := 0
	for _, r := range spec.Devices.Requests {
		requests += 1 + len(r.FirstAvailable)
		few := resourcev1.DeviceRequest{Name: r.Name}
		if e := r.Exactly; e != nil {
			few.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: e.DeviceClassName,
				AllocationMode: e.AllocationMode, Count: e.Count, AdminAccess: e.AdminAccess}
		}
		for _, s := range r.FirstAvailable {
			few.FirstAvailable = append(few.FirstAvailable,
				resourcev1.DeviceSubRequest{DeviceClassName: s.DeviceClassName, AllocationMode: s.AllocationMode, Count: s.Count})
		}
		out.Devices.Requests = append(out.Devices.Requests, few)
	}
	if requests > maxRequests || out.Size() > maxReducedSpec {
		all := resourcev1.ExactDeviceRequest{DeviceClassName: classTooLarge, AllocationMode: resourcev1.DeviceAllocationModeAll}
		out.Devices.Requests = []resourcev1.DeviceRequest{{Exactly: &all}}
	}
	return out
}

// slimStatus keeps which requests of a claim were given devices.
func slimStatus(given *resourcev1.AllocationResult) (s resourcev1.ResourceClaimStatus) {
	if given == nil {
		return s
	}
	s.Allocation = &resourcev1.AllocationResult{}
	for i := range given.Devices.Results {
		s.Allocation.Devices.Results = append(s.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: given.Devices.Results[i].Request})
	}
	return s
}

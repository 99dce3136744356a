package claims

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// The label of gpuslice's templates. It proves nothing: anybody may write it.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "gpuslice"
)

// Request is the name of the one request of a claim.
const Request = "gpu"

// Requests of a claim with alternatives, and the class of the first: NVIDIA's own, whatever classes profiles have.
const (
	requestInstance = "mig"
	requestShare    = "share"
	ClassInstances  = "mig.nvidia.com"
)

// GivesInstance is the request in a claim's allocation that shows that an instance was free.
const GivesInstance = Request + "/" + requestInstance

// Of a device that is not shared a claim gets all, whatever its request.
const shared = "device.allowMultipleAllocations"

// Object is the template in a namespace.
func (t Template) Object(namespace string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: t.Name(), Namespace: namespace, Labels: map[string]string{LabelManagedBy: ManagedBy}},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: t.Spec()},
	}
}

// Spec is the spec of claims of the template, with the server's defaults.
func (t Template) Spec() resourcev1.ResourceClaimSpec {
	capacity := map[resourcev1.QualifiedName]resource.Quantity{"memory": *resource.NewQuantity(t.Memory.Bytes(), resource.BinarySI)}
	if t.Share {
		capacity["shares"] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	selector := shared
	if t.Of != 0 { // the domain of its capacities is the driver's name
		selector = fmt.Sprintf("%s && device.capacity[device.driver].memory.asInteger() / %d == %d", shared, quantity.Mebibyte, t.Of)
	}
	exact := resourcev1.ExactDeviceRequest{
		DeviceClassName: t.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(t.Count),
		Selectors: chosenBy(selector), Capacity: &resourcev1.CapacityRequirements{Requests: capacity},
	}
	devices := resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: Request, Exactly: &exact}}}
	if t.Preferred != "" {
		devices.Requests[0] = resourcev1.DeviceRequest{Name: Request, FirstAvailable: t.alternatives(&exact)}
	}
	if t.Count > 1 {
		uuid := resourcev1.FullyQualifiedName(nvidia.DRADriver + "/uuid")
		devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: &uuid}}
	}
	return resourcev1.ResourceClaimSpec{Devices: devices}
}

// alternatives are an instance of the profile, which nobody shares, and the share.
func (t Template) alternatives(share *resourcev1.ExactDeviceRequest) []resourcev1.DeviceSubRequest {
	return []resourcev1.DeviceSubRequest{
		{Name: requestInstance, DeviceClassName: ClassInstances, AllocationMode: share.AllocationMode,
			Count: 1, Selectors: chosenBy(beginsInstance + t.Preferred + "'")},
		{Name: requestShare, DeviceClassName: share.DeviceClassName, AllocationMode: share.AllocationMode,
			Count: share.Count, Selectors: share.Selectors, Capacity: share.Capacity},
	}
}

func chosenBy(expression string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
}

// beginsInstance begins the selector of instances of a profile.
const beginsInstance = "!" + shared + " && device.attributes['" + nvidia.DRADriver + "'].profile == '"

// Matches reports whether a claim's requests are the template's.
func (t Template) Matches(spec *resourcev1.ResourceClaimSpec) bool {
	return equality.Semantic.DeepEqual(*spec, t.Spec())
}

// Of returns the template of claims with this spec; ok is false if there is none.
func Of(spec *resourcev1.ResourceClaimSpec) (t Template, ok bool) {
	if len(spec.Devices.Requests) != 1 {
		return t, false
	}
	e, first := amountOf(&spec.Devices.Requests[0])
	if e == nil || e.Capacity == nil {
		return t, false
	}
	memory := e.Capacity.Requests["memory"]
	_, share := e.Capacity.Requests["shares"]
	t = Template{Class: e.DeviceClassName, Memory: quantity.MiB(memory.Value() / quantity.Mebibyte),
		Count: int(e.Count), Share: share, Preferred: first}
	if len(e.Selectors) == 1 && e.Selectors[0].CEL != nil {
		expression := e.Selectors[0].CEL.Expression
		t.Of = mib(expression[strings.LastIndex(expression, " ")+1:]) // 0: any, or it is none of ours
	}
	return t, t.Validate() == nil && t.Matches(spec)
}

// amountOf is the part of a request that names an amount, and the profile of which an instance comes first; nil: there is none,
// or more than a template of ours has.
func amountOf(r *resourcev1.DeviceRequest) (e *resourcev1.ExactDeviceRequest, first string) {
	if r.Exactly != nil || len(r.FirstAvailable) != 2 {
		return r.Exactly, ""
	}
	instance, share := &r.FirstAvailable[0], &r.FirstAvailable[1]
	if len(instance.Selectors) != 1 || instance.Selectors[0].CEL == nil {
		return nil, ""
	}
	first = strings.TrimSuffix(strings.TrimPrefix(instance.Selectors[0].CEL.Expression, beginsInstance), "'")
	return &resourcev1.ExactDeviceRequest{DeviceClassName: share.DeviceClassName,
		Selectors: share.Selectors, Count: share.Count, Capacity: share.Capacity}, first
}

// IsSlice reports whether a claim matches a template of gpuslice's; nil does not.
func IsSlice(spec *resourcev1.ResourceClaimSpec) bool {
	if spec == nil {
		return false
	}
	_, ok := Of(spec)
	return ok
}

// Lies reports whether the template of that name is to have another spec.
func Lies(name string, spec *resourcev1.ResourceClaimSpec) bool {
	t, err := Parse(name)
	return err == nil && !t.Matches(spec)
}

// NamesSlice reports whether a template of the name is one of gpuslice's.
func NamesSlice(template string) bool {
	_, err := Parse(template)
	return err == nil
}

// Named are the templates that a pod names, in its namespace.
func Named(pod *corev1.Pod) (out []*resourcev1.ResourceClaimTemplate) {
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimTemplateName == nil {
			continue
		}
		if t, err := Parse(*c.ResourceClaimTemplateName); err == nil {
			out = append(out, t.Object(pod.Namespace))
		}
	}
	return out
}

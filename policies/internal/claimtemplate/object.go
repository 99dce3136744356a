package claimtemplate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/resourcename"
)

// Labels that gpuslice writes on its templates. They prove nothing: anybody may write them.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "gpuslice"
)

// Request is the name of the one request of a claim.
const Request = "gpu"

// Requests of a claim with alternatives, and the class of the first: NVIDIA's own, whatever classes stand for profiles.
const (
	requestInstance = "mig"
	requestShare    = "share"
	ClassInstances  = "mig.nvidia.com"
)

// GivesInstance is the request in a claim's allocation that tells that an instance was free.
const GivesInstance = Request + "/" + requestInstance

// Of a device that is not shared a claim gets all, whatever it asks for.
const shared = "device.allowMultipleAllocations"

// Object is the template in a namespace.
func (t Template) Object(namespace string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: t.Name(), Namespace: namespace, Labels: map[string]string{LabelManagedBy: ManagedBy}},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: t.Spec()},
	}
}

// Spec is what claims of the template ask for, with the server's defaults.
func (t Template) Spec() resourcev1.ResourceClaimSpec {
	capacity := map[resourcev1.QualifiedName]resource.Quantity{"memory": *resource.NewQuantity(t.Memory.Bytes(), resource.BinarySI)}
	if t.Share {
		capacity["shares"] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	exact := resourcev1.ExactDeviceRequest{
		DeviceClassName: t.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(t.Count),
		Selectors: chosenBy(t.selector()), Capacity: &resourcev1.CapacityRequirements{Requests: capacity},
	}
	devices := resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: Request, Exactly: &exact}}}
	if t.First != "" {
		devices.Requests[0] = resourcev1.DeviceRequest{Name: Request, FirstAvailable: t.alternatives(&exact)}
	}
	if t.Count > 1 {
		uuid := resourcev1.FullyQualifiedName(resourcename.NVIDIADriver + "/uuid")
		devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: &uuid}}
	}
	return resourcev1.ResourceClaimSpec{Devices: devices}
}

// alternatives are an instance of the profile, which nobody shares, and the share.
func (t Template) alternatives(share *resourcev1.ExactDeviceRequest) []resourcev1.DeviceSubRequest {
	return []resourcev1.DeviceSubRequest{
		{Name: requestInstance, DeviceClassName: ClassInstances, AllocationMode: share.AllocationMode, Count: 1, Selectors: chosenBy(beginsInstance + t.First + "'")},
		{Name: requestShare, DeviceClassName: share.DeviceClassName, AllocationMode: share.AllocationMode, Count: share.Count, Selectors: share.Selectors, Capacity: share.Capacity},
	}
}

func chosenBy(expression string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
}

// beginsInstance begins the selector of instances of a profile.
const beginsInstance = "!" + shared + " && device.attributes['" + resourcename.NVIDIADriver + "'].profile == '"

// selector chooses the devices. The driver's name is that of the domain of its capacities.
func (t Template) selector() string {
	if t.Of == 0 {
		return shared
	}
	return fmt.Sprintf("%s && device.capacity[device.driver].memory.asInteger() / %d == %d", shared, quantity.Mebibyte, t.Of)
}

// Matches reports whether a claim asks for what the template does, and for nothing else.
func (t Template) Matches(spec *resourcev1.ResourceClaimSpec) bool {
	return equality.Semantic.DeepEqual(*spec, t.Spec())
}

// Of is the template whose claims ask for what spec does; ok is false where there is none.
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
	t = Template{Class: e.DeviceClassName, Memory: quantity.MiB(memory.Value() / quantity.Mebibyte), Count: int(e.Count), Share: share, First: first}
	if len(e.Selectors) == 1 && e.Selectors[0].CEL != nil {
		t.Of = chosen(e.Selectors[0].CEL.Expression)
	}
	return t, t.Validate() == nil && t.Matches(spec)
}

// amountOf is the part of a request that names an amount, and the profile of which an instance comes first; nil: there is none, or more than
// a template of ours has.
func amountOf(r *resourcev1.DeviceRequest) (e *resourcev1.ExactDeviceRequest, first string) {
	if r.Exactly != nil || len(r.FirstAvailable) != 2 {
		return r.Exactly, ""
	}
	instance, share := &r.FirstAvailable[0], &r.FirstAvailable[1]
	if len(instance.Selectors) != 1 || instance.Selectors[0].CEL == nil {
		return nil, ""
	}
	first = strings.TrimSuffix(strings.TrimPrefix(instance.Selectors[0].CEL.Expression, beginsInstance), "'")
	return &resourcev1.ExactDeviceRequest{DeviceClassName: share.DeviceClassName, Selectors: share.Selectors, Count: share.Count, Capacity: share.Capacity}, first
}

// IsSlice reports whether a claim asks for what a template of gpuslice's does; nil does not.
func IsSlice(spec *resourcev1.ResourceClaimSpec) bool {
	if spec == nil {
		return false
	}
	_, ok := Of(spec)
	return ok
}

// Lies reports whether a template of that name is to ask for something else.
func Lies(name string, spec *resourcev1.ResourceClaimSpec) bool {
	t, err := Parse(name)
	return err == nil && !t.Matches(spec)
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

// chosen is the memory of the devices that a selector chooses; 0: any, or it is none of ours.
func chosen(expression string) quantity.MiB {
	n, _ := strconv.ParseInt(expression[strings.LastIndex(expression, " ")+1:], 10, 64)
	return quantity.MiB(n)
}

// IsManaged reports whether a template has the labels of gpuslice's.
func IsManaged(labels map[string]string) bool { return labels[LabelManagedBy] == ManagedBy }

// Classes are those that a claim asks for, alternatives included, sorted.
func Classes(spec *resourcev1.ResourceClaimSpec) (classes []string) {
	for _, r := range spec.Devices.Requests {
		if r.Exactly != nil {
			classes = append(classes, r.Exactly.DeviceClassName)
		}
		for _, s := range r.FirstAvailable {
			classes = append(classes, s.DeviceClassName)
		}
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

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
	devices := resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: Request, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: t.Class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(t.Count),
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: t.selector()}}},
		Capacity:  &resourcev1.CapacityRequirements{Requests: capacity},
	}}}}
	if t.Count > 1 {
		uuid := resourcev1.FullyQualifiedName(resourcename.NVIDIADriver + "/uuid")
		devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: &uuid}}
	}
	return resourcev1.ResourceClaimSpec{Devices: devices}
}

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
	if len(spec.Devices.Requests) != 1 || spec.Devices.Requests[0].Exactly == nil || spec.Devices.Requests[0].Exactly.Capacity == nil {
		return t, false
	}
	e := spec.Devices.Requests[0].Exactly
	memory := e.Capacity.Requests["memory"]
	_, share := e.Capacity.Requests["shares"]
	t = Template{Class: e.DeviceClassName, Memory: quantity.MiB(memory.Value() / quantity.Mebibyte), Count: int(e.Count), Share: share}
	if len(e.Selectors) == 1 && e.Selectors[0].CEL != nil {
		t.Of = chosen(e.Selectors[0].CEL.Expression)
	}
	return t, t.Validate() == nil && t.Matches(spec)
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

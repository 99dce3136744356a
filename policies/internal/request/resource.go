package request

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// gpuResource is a GPU resource as a container names it.
type gpuResource struct {
	name     string
	list     string            // that names it: limits or requests
	count    int64             // whole units; 0 if fraction has the part of one
	fraction quantity.Fraction // of one unit
	amount   resource.Quantity // as written
}

// gpuResourceOf reads c's requests under GPU names. The zero value means that it requests none. Two names in one
// container, and quantities out of range, are violations.
func gpuResourceOf(c *corev1.Container, offered []pools.Pool) (found gpuResource, _ *api.Violation) {
	list := "limits"
	deny := func(name corev1.ResourceName, reason, detail string) *api.Violation {
		v := Invalid("", reason, detail)
		v.Container, v.Field = c.Name, ResourceField(list, string(name))
		return v
	}
	for i, quantities := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		if i == 1 {
			list = "requests"
		}
		for _, name := range slices.Sorted(maps.Keys(quantities)) { // the same violation each time
			q := quantities[name]
			if !pools.IsGPU(string(name), offered) || q.IsZero() {
				continue
			}
			if string(name) == found.name {
				if limit := c.Resources.Limits[name]; limit.Cmp(q) != 0 {
					return gpuResource{}, deny(name, "GPU quantity", fmt.Sprintf(
						"container %q: limits say %s: %s, and requests %s; write the same in both",
						c.Name, name, quantity.GPUText(limit), quantity.GPUText(q)))
				}
				continue
			}
			if found.name != "" {
				return gpuResource{}, deny(name, "two GPU resources in one container", fmt.Sprintf(
					"container %q requests %s and %s; name one of them", c.Name, min(found.name, string(name)), max(found.name, string(name))))
			}
			count, fraction, err := quantity.GPUs(q)
			if err != nil {
				return gpuResource{}, deny(name, "GPU quantity", fmt.Sprintf("container %q: %s: %v", c.Name, name, err))
			}
			found = gpuResource{string(name), list, count, fraction, q}
		}
	}
	return found, nil
}

// ResourceField is the path of a quantity in its container.
func ResourceField(list, name string) string {
	return field.NewPath("resources", list).Key(name).String()
}

// Invalid denies a request that cannot be read, or contradicts itself, in a field of the pod.
func Invalid(at, reason, detail string) *api.Violation {
	return &api.Violation{Rule: api.RuleRequest, Reason: reason, Detail: detail, Field: at}
}

// Immutable denies a change of a field, which people read as what.
func Immutable(at, what, was, is string) api.Violation {
	return api.Violation{Rule: api.RuleImmutable, Field: at, Reason: "the slice of a live pod cannot change", Detail: fmt.Sprintf(
		"%s was %s and would be %s; delete the pod and create it again with the new value", what, was, is)}
}

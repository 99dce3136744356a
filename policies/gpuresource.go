package policies

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// isGPUResource reports whether name is one under which GPUs are asked for: NVIDIA's own names and those that pools offer.
func isGPUResource(name string, pools []Pool) bool {
	if name == ResourceGPU || name == ResourceGPUShared || strings.HasPrefix(name, resourceMIGPrefix) {
		return true
	}
	return slices.ContainsFunc(pools, func(p Pool) bool { return p.Resource == name })
}

// gpuResourceOf reads what c asks for under GPU names. A zero GPUResource means that it asks for none. Two names in one
// container, and quantities out of range, are violations.
func gpuResourceOf(c *corev1.Container, pools []Pool) (GPUResource, *Violation) {
	var found GPUResource
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if !isGPUResource(string(name), pools) || q.IsZero() {
				continue
			}
			if string(name) == found.Name {
				if limit := c.Resources.Limits[name]; limit.Cmp(q) != 0 {
					return GPUResource{}, requestViolation("GPU quantity", fmt.Sprintf(
						"container %q: limits say %s: %s, and requests %s; write the same in both", c.Name, name, limit.String(), q.String()))
				}
				continue
			}
			if found.Name != "" {
				return GPUResource{}, requestViolation("two GPU resources in one container", fmt.Sprintf(
					"container %q asks for %s; name one of them", c.Name, joinSorted(found.Name, string(name))))
			}
			count, share, err := gpuQuantity(q)
			if err != nil {
				return GPUResource{}, requestViolation("GPU quantity", fmt.Sprintf("container %q: %s: %v", c.Name, name, err))
			}
			found = GPUResource{Name: string(name), Count: count, Share: share, Text: fmt.Sprintf("%q", q.String())}
		}
	}
	return found, nil
}

func joinSorted(a, b string) string {
	return min(a, b) + " and " + max(a, b)
}

func requestViolation(reason, detail string) *Violation {
	return &Violation{Rule: RuleRequest, Reason: reason, Detail: detail}
}

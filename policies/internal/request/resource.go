package request

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// IsGPUResource reports whether name is one under which GPUs are requested: NVIDIA's own names and those that pools offer.
func IsGPUResource(name string, offered []pools.Pool) bool {
	if name == api.ResourceGPU || name == nvidia.SharedGPU || strings.HasPrefix(name, nvidia.MIGPrefix) {
		return true
	}
	return slices.ContainsFunc(offered, func(p pools.Pool) bool { return p.Resource == name })
}

// gpuResourceOf reads c's requests under GPU names. A zero Resource means that it requests none. Two names in one
// container, and quantities out of range, are violations.
func gpuResourceOf(c *corev1.Container, pools []pools.Pool) (spellings.Resource, *api.Violation) {
	var found spellings.Resource
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if !IsGPUResource(string(name), pools) || q.IsZero() {
				continue
			}
			if string(name) == found.Name {
				if limit := c.Resources.Limits[name]; limit.Cmp(q) != 0 {
					return spellings.Resource{}, Invalid("GPU quantity", fmt.Sprintf(
						"container %q: limits say %s: %s, and requests %s; write the same in both", c.Name, name, quantity.GPUText(limit), quantity.GPUText(q)))
				}
				continue
			}
			if found.Name != "" {
				return spellings.Resource{}, Invalid("two GPU resources in one container", fmt.Sprintf(
					"container %q requests %s; name one of them", c.Name, joinSorted(found.Name, string(name))))
			}
			count, share, err := quantity.GPUs(q)
			if err != nil {
				return spellings.Resource{}, Invalid("GPU quantity", fmt.Sprintf("container %q: %s: %v", c.Name, name, err))
			}
			found = spellings.Resource{Name: string(name), Count: count, Share: share, Text: fmt.Sprintf("%q", quantity.GPUText(q))}
		}
	}
	return found, nil
}

func joinSorted(a, b string) string {
	return min(a, b) + " and " + max(a, b)
}

func Invalid(reason, detail string) *api.Violation {
	return &api.Violation{Rule: api.RuleRequest, Reason: reason, Detail: detail}
}

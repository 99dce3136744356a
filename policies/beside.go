package policies

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Bounds on the warnings about resources beside a slice, and on those of which these are chosen.
const maxBeside, maxFound = 8, 64

// besideSlice are warnings about resources that the pod requests beside its slice, and that no node of the slice's pools
// has, or that may be renamed GPUs where no pool is known. Of a pool without nodes nothing is known, and a scheduler of
// another system may count what no node shows.
func (c *creation) besideSlice(p *promise.Promise) (warnings []string) {
	var chosen []pools.Pool
	for _, pool := range c.in.Pools {
		if slices.Contains(p.Pools, pool.Name) && len(pool.Nodes) > 0 {
			chosen = append(chosen, pool)
		}
	}
	noPools := len(chosen) == 0 && len(c.in.Pools) == 0
	if s := c.in.Pod.Spec.SchedulerName; len(chosen) < len(p.Pools) && !noPools || s != "" && s != corev1.DefaultSchedulerName {
		return nil
	}
	for container := range podspec.Containers(&c.in.Pod.Spec) {
		for resource, amount := range container.Resources.Limits {
			name := string(resource)
			if len(warnings) >= maxFound {
				break
			}
			_, removed := p.Request.Of(container.Name).Foreign[name]
			if amount.IsZero() || removed || !strings.Contains(name, "/") || pools.IsGPU(name, c.in.Pools) || c.byClass(name) ||
				slices.ContainsFunc(chosen, func(pool pools.Pool) bool { return slices.Contains(pool.Extended, name) }) {
				continue
			}
			if noPools {
				if strings.HasPrefix(name, nvidia.ResourcePrefix) { // renamed, for all that is known
					warnings = append(warnings, fmt.Sprintf("container %s: %s is not known to be a GPU, and is requested in addition to the slice. "+
						"If it is a GPU, the pod waits for two: have the administrator declare a pool of it in the default policy",
						message.Quote(container.Name), message.Quote(name)))
				}
				continue
			}
			warnings = append(warnings, fmt.Sprintf("container %s: no node of %s has %s, and with it the pod waits; remove it",
				message.Quote(container.Name), chosen[0].Describe(), message.Quote(name)))
		}
	}
	slices.Sort(warnings)
	return warnings[:min(len(warnings), maxBeside)]
}

// byClass reports whether a device class may stand for the resource.
func (c *creation) byClass(resource string) bool {
	if strings.HasPrefix(resource, resourcev1.ResourceDeviceClassPrefix) {
		return true
	}
	for _, class := range c.in.DeviceClasses {
		if name := class.Spec.ExtendedResourceName; name != nil && *name == resource {
			return true
		}
	}
	return false
}

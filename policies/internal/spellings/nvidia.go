package spellings

import (
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
)

// nvidiaPrefix begins the annotations by which NVIDIA's KAI GPU fractioning is requested, container by container.
const nvidiaPrefix = "nvidia.com/container."

func nvidia() Spelling {
	return Spelling{
		Name: "nvidia", System: "NVIDIA's GPU fractioning",
		Doc: "annotation nvidia.com/container.NAME.gpu-memory.request: 8Gi means a slice of container NAME",
		Named: map[string]named{nvidiaPrefix: func(rest string) (string, reading, bool) {
			for field, read := range map[string]reading{
				"gpu-memory.request": bytes,
				"gpu-memory.limit":   limitBytes,
				"gpu-compute.mode": strategy("time-slicing, sm-sharing", map[string]api.StrategyName{
					"time-slicing": "time-slicing", "sm-sharing": "mps"}),
			} {
				if container, ok := strings.CutSuffix(rest, "."+field); ok {
					return container, read, true
				}
			}
			return "", nil, false
		}},
		complete: func(c *collected) error {
			if c.Size.Memory == 0 { // a limit alone is the request too
				c.Size.Memory = c.Size.MemoryLimit
			}
			return nil
		},
	}
}

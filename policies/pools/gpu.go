package pools

import (
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
)

// IsGPU reports whether name is one under which GPUs are requested: NVIDIA's own names and those that pools offer. Other names that begin
// like NVIDIA's are of network cards, of amounts that other systems count, and of cards that are passed through to virtual machines.
func IsGPU(name string, offered []Pool) bool {
	if name == api.ResourceGPU || name == nvidia.SharedGPU || strings.HasPrefix(name, nvidia.MIGPrefix) {
		return true
	}
	return slices.ContainsFunc(offered, func(p Pool) bool { return p.Resource == name })
}

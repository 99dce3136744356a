package foreign

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
)

func volcano() System {
	return System{Name: "Volcano", Resources: map[string]func(resource.Quantity) string{
		"volcano.sh/vgpu-number":            devices,
		"volcano.sh/vgpu-memory":            memory(api.LabelMemory, 1),
		"volcano.sh/vgpu-memory-percentage": percent,
		"volcano.sh/vgpu-cores":             cores,
		"volcano.sh/gpu-memory":             memory(api.LabelMemory, 1),
		"volcano.sh/gpu-number":             devices,
	}}
}

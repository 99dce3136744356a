package foreign

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
)

func vgpuManager() System {
	return System{Name: "vgpu-manager", Resources: map[string]func(resource.Quantity) string{
		"nvidia.com/vgpu-number": devices,
		"nvidia.com/vgpu-memory": memory(api.LabelMemory, 1), // of each GPU
		"nvidia.com/vgpu-cores":  cores,
	}}
}

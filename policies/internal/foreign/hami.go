package foreign

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
)

func hami() System {
	return System{Name: "HAMi", Resources: map[string]func(resource.Quantity) string{
		"nvidia.com/gpumem":            memory(api.LabelMemory, 1), // of each GPU
		"nvidia.com/gpumem-percentage": percent,
		"nvidia.com/gpucores":          cores,
	}}
}

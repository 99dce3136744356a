package foreign

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
)

func koordinator() System {
	return System{Name: "Koordinator", Resources: map[string]func(resource.Quantity) string{
		"koordinator.sh/gpu":              percent, // 100 is one GPU
		"koordinator.sh/gpu-memory":       amount(api.LabelMemory),
		"koordinator.sh/gpu-memory-ratio": percent,
		"koordinator.sh/gpu-core":         cores,
	}}
}

package foreign

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
)

func tkestack() System {
	return System{Name: "tkestack", Resources: map[string]func(resource.Quantity) string{
		"tencent.com/vcuda-memory": memory(api.LabelMemory, 256),
		"tencent.com/vcuda-core":   cores, // 100 is one GPU
	}}
}

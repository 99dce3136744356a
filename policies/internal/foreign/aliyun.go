package foreign

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
)

func aliyun() System {
	return System{Name: "Aliyun gpushare", Resources: map[string]func(resource.Quantity) string{
		"aliyun.com/gpu-mem":   memory(api.LabelMemory, 1024),
		"aliyun.com/gpu-count": devices,
	}}
}

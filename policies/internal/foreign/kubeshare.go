package foreign

import "github.com/gpuslice/gpuslice/policies/api"

func kubeShare() System {
	return System{Name: "KubeShare", Words: map[string]func(string) string{
		"sharedgpu/gpu_mem":     written(amount(api.LabelMemory)),
		"sharedgpu/gpu_request": fraction,
	}}
}

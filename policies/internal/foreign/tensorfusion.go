package foreign

import "github.com/gpuslice/gpuslice/policies/api"

func tensorFusion() System {
	return System{Name: "TensorFusion", Words: map[string]func(string) string{
		"tensor-fusion.ai/vram-request":            written(amount(api.LabelMemory)),
		"tensor-fusion.ai/vram-limit":              written(amount(api.LabelMemoryLimit)),
		"tensor-fusion.ai/compute-percent-request": written(cores),
	}}
}

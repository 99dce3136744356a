package foreign

import "github.com/gpuslice/gpuslice/policies/api"

func kai() System {
	return System{Name: "KAI or Run:ai", Words: map[string]func(string) string{
		"gpu-memory":       written(memory(api.LabelMemory, 1)),
		"gpu-memory-limit": written(memory(api.LabelMemoryLimit, 1)),
		"gpu-fraction":     fraction,
	}}
}

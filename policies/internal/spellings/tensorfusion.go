package spellings

import (
	"errors"
	"strings"
)

// tensorFusion counts the part of each of its GPUs.
func tensorFusion() Spelling {
	return Spelling{
		Name: "tensor-fusion", System: "TensorFusion", Doc: "annotation tensor-fusion.ai/vram-request: 8Gi means 8 GiB of each GPU",
		Words: unreadNames(map[string]reading{
			"tensor-fusion.ai/vram-request":            bytes,
			"tensor-fusion.ai/vram-limit":              limitBytes,
			"tensor-fusion.ai/compute-percent-request": cores(oneDevice),
			"tensor-fusion.ai/gpu-count":               devices,
			"tensor-fusion.ai/inject-container": func(v value, into *collected) error {
				if strings.Contains(v.text, ",") {
					return errors.New("it names several containers; write the annotation gpuslice.dev/containers")
				}
				into.Container = v.text
				return nil
			},
		}, "tensor-fusion.ai/tflops-request", "tensor-fusion.ai/tflops-limit", "tensor-fusion.ai/gpu-model", "tensor-fusion.ai/gpu-ids",
			"tensor-fusion.ai/gpu-indices", "tensor-fusion.ai/workload-profile"),
	}
}

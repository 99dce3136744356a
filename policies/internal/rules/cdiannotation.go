package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// cdiAnnotation denies annotations that inject devices by their CDI name.
func cdiAnnotation() Rule {
	return Rule{Reason: "an annotation that takes devices", Everywhere: true, Find: func(s Subject) (found []string) {
		for key, value := range s.Pod.Annotations {
			if injectsDevices(key, value) {
				found = append(found, fmt.Sprintf("annotation %s: %s injects devices past what the pod asks for", message.Quote(key), message.Quote(value)))
			}
		}
		slices.Sort(found)
		return found
	}, Instead: "remove it, and ask for " + api.ResourceGPU + ": 1"}
}

// injectsDevices reports whether an annotation names NVIDIA devices to a container runtime. Specifications of CDI are named by
// their vendor, and every one that NVIDIA's tools write has nvidia.com in that name.
func injectsDevices(key, value string) bool {
	return strings.HasPrefix(key, "nvidia.cdi.k8s.io/") || strings.HasPrefix(key, "cdi.k8s.io/") && strings.Contains(value, "nvidia.com")
}

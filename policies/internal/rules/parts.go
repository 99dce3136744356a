package rules

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
)

// unpromisedParts denies a pod without a slice that requests parts of a device by itself: whatever their number it would see
// all of the device's memory, of which the others were promised theirs.
func unpromisedParts(s Subject) []api.Violation {
	// A taint keeps nobody out: tolerations can be added to a live pod, and a pod with a nodeName passes the scheduler by. The kubelet
	// holds it to its selector and affinity all the same, and those can only be narrowed.
	everyTaint := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	for i := range s.Pools {
		p := &s.Pools[i]
		if !p.Granular {
			continue
		}
		for c := range podspec.Containers(&s.Pod.Spec) {
			parts := c.Resources.Limits[corev1.ResourceName(p.Resource)]
			if parts.IsZero() {
				continue
			}
			if ok, _ := p.Reach(s.Pod, everyTaint); ok {
				return []api.Violation{{Rule: api.RuleStrategy, Reason: "parts of a GPU without a slice",
					Container: c.Name, Field: request.ResourceField("limits", p.Resource), Detail: fmt.Sprintf(
						"container %q requests %s of %s, which are parts of a GPU on %s, and without a slice it would see all of it; request %s: 1 and write %s: \"8Gi\" (or what it needs)",
						c.Name, parts.String(), p.Resource, p.Describe(), api.ResourceGPU, api.LabelMemory)}}
			}
		}
	}
	return nil
}

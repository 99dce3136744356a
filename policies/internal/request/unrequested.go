package request

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Bounds on the warnings about a pod without a slice. Pods come here before the API server has validated names and counts.
const (
	maxUnrequested  = 8   // warnings
	maxExamined     = 64  // names of resources, or warnings of which these are chosen
	maxResourceName = 317 // bytes: Kubernetes has 253 before the slash, and 63 after it
)

// Unrequested are warnings about a pod that requests no slice: probable intentions of its author, and surprising
// effects. allowed are the strategies of its policy.
func Unrequested(pod *corev1.Pod, offered []pools.Pool, allowed []api.StrategyName) (warnings []string) {
	// A label that only refines a slice is most likely half a request.
	for _, label := range []string{api.LabelFramework, api.LabelContainer} {
		if _, ok := pod.Labels[label]; ok {
			warnings = append(warnings, fmt.Sprintf("label %s alone requests no slice; add %s: %s",
				label, api.LabelMemory, pools.AdvisedMemory(offered, allowed)))
		}
	}
	warnings = append(warnings, UnreadVariables(pod)...)
	for c := range podspec.Containers(&pod.Spec) {
		for name, q := range c.Resources.Limits {
			if len(name) > maxResourceName || len(warnings) >= maxExamined {
				continue
			}
			if text := besideSlices(string(name), q.Value(), offered, allowed); text != "" {
				warnings = append(warnings, fmt.Sprintf("container %s: %s", message.Quote(c.Name), text))
			}
		}
	}
	warnings = append(warnings, Ranks(pod, offered)...)
	slices.Sort(warnings)
	return warnings[:min(len(warnings), maxUnrequested)]
}

// Ranks are warnings about containers that start processes on more GPUs than they request.
func Ranks(pod *corev1.Pod, offered []pools.Pool) (warnings []string) {
	for c := range podspec.Containers(&pod.Spec) {
		if gpu, v := gpuResourceOf(c, offered); v == nil && gpu.count > 0 {
			if text := frameworks.RanksBeyond(c, gpu.count); text != "" {
				warnings = append(warnings, fmt.Sprintf("container %q: %s", c.Name, text))
			}
		}
	}
	return warnings[:min(len(warnings), maxUnrequested)]
}

// UnreadVariables are warnings about variables that guides name for a part of a GPU, and that nothing reads.
func UnreadVariables(pod *corev1.Pod) (warnings []string) {
	for c := range podspec.Containers(&pod.Spec) {
		for i := range c.Env {
			if name := c.Env[i].Name; slices.Contains([]string{"CUDA_MEM_FRACTION", "CUDA_MEMORY_FRACTION", "GPU_MEMORY_FRACTION"}, name) {
				warnings = append(warnings,
					fmt.Sprintf("container %s: neither CUDA nor a framework reads %s; the label %s: \"0.25\" requests a part of a GPU",
						message.Quote(c.Name), name, api.LabelFraction))
				break
			}
		}
	}
	return warnings
}

// besideSlices describes so many of a resource without a slice; "" if there is nothing to report.
func besideSlices(resource string, count int64, all []pools.Pool, allowed []api.StrategyName) string {
	var shared *pools.Pool
	for i := range all {
		if p := &all[i]; p.Resource == resource && strategies.Named(p.Strategy).Shared() {
			shared = p
		}
	}
	whole := slices.ContainsFunc(all, func(p pools.Pool) bool { return p.Resource == resource && strategies.Named(p.Strategy).Whole() })
	switch {
	case shared != nil && count > 1 && !whole:
		return fmt.Sprintf("%d of %s may be shares of the same device (%s) and give no more than one; request one",
			count, resource, shared.Strategy)
	case shared != nil && !(resource == api.ResourceGPU && whole):
		return fmt.Sprintf(
			"%s is a share of a device (%s), and without a slice nothing limits its memory; add the label %s: %s",
			resource, shared.Strategy, api.LabelMemory, pools.AdvisedMemory(all, allowed))
	}
	return ""
}

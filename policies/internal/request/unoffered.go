package request

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Unoffered are warnings about a pod without a slice that requests GPUs by names under which no node offers any. resources are all
// names by which nodes offer devices, and allowed the strategies of the pod's policy.
func Unoffered(pod *corev1.Pod, all []pools.Pool, resources []string, allowed []api.StrategyName) (warnings []string) {
	offered, memory := gpuNames(all), pools.AdvisedMemory(all, allowed)
	examined := 0
	for c := range podspec.Containers(&pod.Spec) {
		for resource, amount := range c.Resources.Limits {
			name := string(resource)
			if !strings.Contains(name, "nvidia") || len(name) > maxResourceName {
				continue
			}
			if examined++; examined > maxExamined {
				break
			}
			spelled := spellings.Resources(map[string]string{name: amount.String()}) // which has a warning of its own
			known := slices.Contains(resources, name) || slices.ContainsFunc(all, func(p pools.Pool) bool { return p.Resource == name })
			if known || spelled || amount.IsZero() {
				continue
			}
			if text := describeUnoffered(name, amount.Value(), offered, memory); text != "" {
				warnings = append(warnings, fmt.Sprintf("container %s: %s", message.Quote(c.Name), text))
			}
		}
	}
	slices.Sort(warnings)
	return warnings[:min(len(warnings), maxUnrequested)]
}

// describeUnoffered describes so many of a name that no node offers, where nodes offer GPUs by others; "": the name is not a GPU's.
func describeUnoffered(name string, count int64, offered []string, memory string) string {
	canonical := strings.ToLower(name)
	gpu := pools.IsGPU(canonical, nil)
	if len(offered) == 0 { // an autoscaler may bring nodes with any name
		if !gpu || canonical == name {
			return ""
		}
		return fmt.Sprintf("%s names no GPU, since names of resources are read as they are spelled; write %s", message.Quote(name), canonical)
	}
	instead := fmt.Sprintf("add the label %s: %s for a slice", api.LabelMemory, memory)
	if name != api.ResourceGPU || count > 1 { // a slice is of one GPU
		instead = fmt.Sprintf("request %s: 1 and %s", api.ResourceGPU, instead)
	}
	switch meant := message.Nearest(name, offered); {
	case meant != "" && !pools.IsGPU(name, nil):
		instead = "did you mean " + meant + "?"
	case !gpu && !strings.Contains(canonical, "gpu"):
		return ""
	}
	return fmt.Sprintf("no node offers %s now, and GPUs are offered as %s; %s", message.Quote(name), message.JoinNames(offered), instead)
}

// gpuNames are the names by which pods can request GPUs of nodes that there are or will be, sorted.
func gpuNames(all []pools.Pool) (names []string) {
	for i := range all {
		if p := &all[i]; p.Resource != "" && !p.Empty() {
			names = append(names, p.Resource)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

package request

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// WithoutDefaults returns the pod without the GPUs that LimitRanges gave to containers which name another GPU resource:
// the plugin runs again after a webhook has renamed the one that it gave, or that the author named. It returns the pod
// itself if there are none, and the LimitRanges' defaults, for the author of a slice.
func WithoutDefaults(pod *corev1.Pod, limitRanges []*corev1.LimitRange, offered []pools.Pool) (_ *corev1.Pod, warnings []string) {
	for _, r := range limitRanges {
		for i := range r.Spec.Limits {
			item := &r.Spec.Limits[i]
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for name, amount := range item.Default {
				if !pools.IsGPU(string(name), offered) || amount.IsZero() {
					continue
				}
				warnings = append(warnings,
					fmt.Sprintf("LimitRange %s gives %s: %s to each container that requests none: it counts as requested", r.Name, name, amount.String()))
				pod = withoutDefault(pod, name, item.Default, offered)
			}
		}
	}
	return pod, warnings
}

// withoutDefault is WithoutDefaults for one resource.
func withoutDefault(pod *corev1.Pod, name corev1.ResourceName, defaults corev1.ResourceList, offered []pools.Pool) *corev1.Pod {
	out := pod.DeepCopy()
	changed := false
	for c := range podspec.EveryContainer(&out.Spec) {
		limit, amount := c.Resources.Limits[name], defaults[name]
		if limit.Cmp(amount) != 0 || !requestsAnother(c, name, offered) {
			continue
		}
		delete(c.Resources.Limits, name)
		delete(c.Resources.Requests, name)
		changed = true
	}
	if !changed {
		return pod
	}
	return out
}

// requestsAnother reports whether the container names a GPU resource beside the one.
func requestsAnother(c *corev1.Container, one corev1.ResourceName, offered []pools.Pool) bool {
	for name, q := range c.Resources.Limits {
		if name != one && !q.IsZero() && pools.IsGPU(string(name), offered) {
			return true
		}
	}
	return false
}

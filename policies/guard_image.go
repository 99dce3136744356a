package policies

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// guardContainers are those of the guard that a pod has already.
func guardContainers(pod *corev1.Pod) (out []*corev1.Container) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == limits.CheckContainer || c.Name == limits.GuardContainer {
			out = append(out, c)
		}
	}
	return out
}

// checkGuardImage denies another image for the promised guard, with its probable author.
func checkGuardImage(in *Input, given *promise.Promise) []api.Violation {
	if given.Guard == nil {
		return nil
	}
	var changed []string
	found := ""
	for _, c := range guardContainers(in.Pod) {
		if c.Image != given.Guard.Image {
			changed, found = append(changed, c.Name), c.Image
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return []api.Violation{{Rule: api.RuleUndone, Reason: "the image of gpuslice's guard was changed",
		Container: changed[0], Field: "image", Detail: fmt.Sprintf(
			"%s has image %q in place of %q; another webhook rewrites images: those who run the cluster exclude containers gpuslice-* there, "+
				"or list the repository in gpuslice's guard.image.mirrors, with the same tag or digest",
			strings.Join(changed, ", "), found, given.Guard.Image)}}
}

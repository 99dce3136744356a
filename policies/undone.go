package policies

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Undone lists what differs on the pod from what the Promise says of it, as paths; none: it is as promised. Containers
// that reach for a GPU beside the promised ones count too, and what keeps the promised guard from its work.
func Undone(pod *corev1.Pod, promise *Promise, pools []Pool) []string {
	if promise.Newer() {
		return nil
	}
	out := append(unplannedContainers(pod, promise, pools), guardHindrances(&pod.Spec, promise)...)
	return append(out, edits(nil).undone(pod, promise)...)
}

// undone lists what applying the edits again would change.
func (l editList) undone(pod *corev1.Pod, promise *Promise) []string {
	promised := l.applyOver(pod, promise, promise)
	if observed, ok := pod.Annotations[AnnotationObserved]; ok { // written after all else
		promised.Annotations[AnnotationObserved] = observed
	}
	if equality.Semantic.DeepEqual(pod.Spec, promised.Spec) && equality.Semantic.DeepEqual(pod.Annotations, promised.Annotations) {
		return nil
	}
	return changedPaths(pod, promised)
}

// unplannedContainers are containers that the Promise knows nothing of and that could reach a GPU.
func unplannedContainers(pod *corev1.Pod, promise *Promise, pools []Pool) (out []string) {
	for c := range everyContainer(&pod.Spec) {
		if promise.container(c.Name) != nil || promise.hasGuard(c.Name) {
			continue
		}
		if asksGPU(c, pools) || choosesDevices(c) {
			out = append(out, fmt.Sprintf("container %s reaches for a GPU and was given none", quoteShort(c.Name)))
		}
	}
	return out
}

// guardHindrances are fields of the author's own by which the promised guard would see no process of the pod, or could
// end none. They were as it needs them when it was planned.
func guardHindrances(spec *corev1.PodSpec, promise *Promise) (out []string) {
	if promise.Guard == nil {
		return nil
	}
	if shared := spec.ShareProcessNamespace; shared != nil && !*shared || shared == nil && !promise.Guard.Shares {
		out = append(out, "spec.shareProcessNamespace")
	}
	for i := range promise.Planned.Containers {
		p := &promise.Planned.Containers[i]
		c, _ := containerNamed(spec, p.Name)
		if c == nil || promise.Guard.Kill || !slices.Contains(p.Tiers, TierGuard) {
			continue
		}
		// Without the right to signal others the guard ends processes of its own user alone.
		if user := runAsUser(spec, c); user == nil || *user != promise.Guard.User {
			out = append(out, fmt.Sprintf("securityContext.runAsUser of container %s", quoteShort(c.Name)))
		}
	}
	return out
}

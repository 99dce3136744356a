package promise

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podpatch"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/visibility"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Undone lists what differs on the pod from what the Promise says of it, as paths; none: it is as promised. Containers
// that reach for a GPU beside the promised ones count too, and what keeps the promised guard from its work.
func (p *Promise) Undone(pod *corev1.Pod, pools []pools.Pool) []string {
	if p.Newer() {
		return nil
	}
	out := append(unplannedContainers(pod, p, pools), guardHindrances(&pod.Spec, p)...)
	if len(pod.Spec.ResourceClaims) > 0 { // where none is left, the edits find it
		out = append(out, p.unclaimed(&pod.Spec)...)
	}
	return append(out, edits(nil).undone(pod, p)...)
}

// undone lists what applying the edits again would change.
func (l editList) undone(pod *corev1.Pod, given *Promise) []string {
	promised := l.apply(pod, given, given)
	if observed, ok := pod.Annotations[api.AnnotationObserved]; ok { // written after all else
		promised.Annotations[api.AnnotationObserved] = observed
	}
	if summary, ok := pod.Annotations[api.AnnotationSummary]; ok && summary != promised.Annotations[api.AnnotationSummary] && given.admits(summary, pod) {
		promised.Annotations[api.AnnotationSummary] = summary
	}
	tier, labelled := pod.Labels[api.LabelTier]
	// Left by an earlier build, or by one that keeps a newer one's promise. Templates are written for pods that have the label.
	if given.Slice == "" && tier == string(given.Planned.Tier) || !labelled && len(given.ClaimTemplates()) == 0 {
		tier = promised.Labels[api.LabelTier]
	}
	if tier == promised.Labels[api.LabelTier] && maps.Equal(pod.Annotations, promised.Annotations) && storedAlike(&pod.Spec, &promised.Spec) {
		return nil
	}
	return podpatch.ChangedPaths(pod, promised)
}

// storedAlike reports whether the API server would store the same bytes for both. Comparing field by field costs ten times as much,
// and is left to pods that differ.
func storedAlike(a, b *corev1.PodSpec) bool {
	x, errOfA := a.Marshal()
	y, errOfB := b.Marshal()
	return errOfA == nil && errOfB == nil && bytes.Equal(x, y)
}

// admits reports whether the summary may be the pod's: less may have been observed on the node than was planned, and an earlier
// build that wrote the promise leaves what a newer one wrote. More than was planned is observed of stored pods alone: the API server
// creates no pod that has a version.
func (p *Promise) admits(summary string, pod *corev1.Pod) bool {
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64) // as the API server reads it: "0" and "x" are none
	gotMore := err == nil && version != 0 && p.mayGetInstances()
	return p.Slice == "" || slices.ContainsFunc(api.Tiers(), func(t api.Tier) bool {
		return (p.Planned.Tier.AtLeast(t) || gotMore && t == api.TierHardware) && summary == p.Summary(t)
	})
}

// unplannedContainers are containers that the Promise knows nothing of and that could reach a GPU.
func unplannedContainers(pod *corev1.Pod, given *Promise, pools []pools.Pool) (out []string) {
	for c := range podspec.EveryContainer(&pod.Spec) {
		if given.Container(c.Name) != nil || given.HasGuard(c.Name) {
			continue
		}
		if request.RequestsGPU(c, pools) || visibility.ChoosesDevices(c) {
			out = append(out, fmt.Sprintf("container %s reaches for a GPU and was given none", message.Quote(c.Name)))
		}
	}
	return out
}

// guardHindrances are fields of the author's own by which the promised guard would see no process of the pod, could
// end none, or shares a limit of memory with them. They were as it needs them when it was planned.
func guardHindrances(spec *corev1.PodSpec, given *Promise) (out []string) {
	if given.Guard == nil || given.Guard.Agent {
		return nil
	}
	if shared := spec.ShareProcessNamespace; shared != nil && !*shared || shared == nil && !given.Guard.Shares {
		out = append(out, "spec.shareProcessNamespace")
	}
	if podspec.LimitsMemory(spec) {
		out = append(out, "spec.resources.limits.memory")
	}
	for i := range given.Planned.Containers {
		p := &given.Planned.Containers[i]
		c, _ := podspec.ContainerNamed(spec, p.Name)
		if c == nil || given.Guard.Kill || !slices.Contains(p.Tiers, api.TierGuard) {
			continue
		}
		// Without the right to signal others the guard ends processes of its own user alone.
		if user := podspec.RunAsUser(spec, c); user == nil || *user != given.Guard.User {
			out = append(out, fmt.Sprintf("securityContext.runAsUser of container %s", message.Quote(c.Name)))
		}
	}
	return out
}

package podedit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// Undone lists the differences between the pod and its Promise, as paths; none: it is as promised. Containers that
// reach for a GPU beside the promised ones count too, and obstacles to the promised guard.
func Undone(p *promise.Promise, pod *corev1.Pod, offered []pools.Pool) []string {
	if p.Newer() {
		return nil
	}
	out := append(Unplanned(pod, p, offered), guardHindrances(&pod.Spec, p)...)
	if len(pod.Spec.ResourceClaims) > 0 { // where none is left, the edits find it
		out = append(out, unclaimed(p, &pod.Spec)...)
	}
	return append(out, edits(nil).undone(pod, p)...)
}

// undone lists the changes that applying the edits again would make.
func (l editList) undone(pod *corev1.Pod, given *promise.Promise) []string {
	promised := l.apply(pod, given, given)
	if observed, ok := pod.Annotations[api.AnnotationObserved]; ok { // written after all else
		promised.Annotations[api.AnnotationObserved] = observed
	}
	if summary, ok := pod.Annotations[api.AnnotationSummary]; ok && summary != promised.Annotations[api.AnnotationSummary] &&
		admits(given, summary, pod) {
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
	return ChangedPaths(pod, promised)
}

// storedAlike reports whether the API server would store the same bytes for both. Comparing field by field costs ten times as much,
// and is left to pods that differ.
func storedAlike(a, b *corev1.PodSpec) bool {
	x, errOfA := a.Marshal()
	y, errOfB := b.Marshal()
	return errOfA == nil && errOfB == nil && bytes.Equal(x, y)
}

// admits reports whether the summary may be the pod's: less may have been observed on the node than was planned, and an
// earlier build that wrote the promise leaves the summary of a newer one. More than was planned is observed of stored
// pods alone: the API server creates no pod that has a version.
func admits(p *promise.Promise, summary string, pod *corev1.Pod) bool {
	version, err := strconv.ParseUint(pod.ResourceVersion, 10, 64) // as the API server reads it: "0" and "x" are none
	gotMore := err == nil && version != 0 && p.MayGetInstances()
	return p.Slice == "" || slices.ContainsFunc(api.Tiers(), func(t api.Tier) bool {
		return (p.Planned.Tier.AtLeast(t) || gotMore && t == api.TierHardware) && summary == p.Summary(t)
	})
}

// Unplanned are containers that the Promise knows nothing of and that could reach a GPU.
func Unplanned(pod *corev1.Pod, given *promise.Promise, offered []pools.Pool) (out []string) {
	for c := range podspec.EveryContainer(&pod.Spec) {
		if given.Container(c.Name) != nil || IsGuard(given, c.Name) {
			continue
		}
		if request.RequestsGPU(c, offered) || ChoosesDevices(c) {
			out = append(out, fmt.Sprintf("container %s reaches for a GPU and was given none", message.Quote(c.Name)))
		}
	}
	return out
}

// unclaimed are the containers whose claims the pod does not have: where two are promised one claim, it has but one of them.
func unclaimed(p *promise.Promise, spec *corev1.PodSpec) (out []string) {
	for i := range p.Containers {
		if c := &p.Containers[i]; c.Claim != "" && (!c.ClaimedBy(spec) || !c.ClaimsAlone(p.Containers[:i])) {
			out = append(out, fmt.Sprintf("claim %q of container %s", c.Claim, message.Quote(c.Name)))
		}
	}
	return out
}

// guardHindrances are fields of the author's own by which the promised guard would see no process of the pod, could
// end none, or shares a limit of memory with them. They were as it needs them when it was planned.
func guardHindrances(spec *corev1.PodSpec, given *promise.Promise) (out []string) {
	if given.Guard == nil || given.Guard.Agent { // an agent sees every process of its node
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

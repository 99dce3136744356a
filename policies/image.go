package policies

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/plan"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// checkImages checks new images of a live pod's slices against policy: the denials of frameworks at creation, and a
// minimum enforcement that rested on the framework's cap. If neither is broken the author is warned about a lost cap.
func checkImages(old, updated *corev1.Pod, governed governedFunc) (found []api.Violation, warnings []string, err error) {
	given, changed := changedImages(old, updated)
	if len(changed) == 0 {
		return nil, nil, nil
	}
	in, err := governed()
	if err != nil || in.Policy.Off() {
		return nil, nil, err
	}
	in.Pod = updated
	for _, c := range changed {
		now := plan.ChangedImage(in.planning(), given, c)
		switch {
		case now.Denied != nil:
			found = append(found, *now.Denied)
		case now.Lost && !now.Tier.AtLeast(in.Policy.MinimumEnforcement.Tier):
			found = append(found, api.Violation{Rule: api.RuleEnforcement, Reason: "below the minimum enforcement",
				Container: c.Name, Field: "image", Detail: fmt.Sprintf(
					"policy %s demands %s; with the new image no framework cap limits container %q, which leaves %s; delete the pod and create it again with the image",
					in.Policy.Name, in.Policy.MinimumEnforcement.Tier, c.Name, now.Tier)})
		case now.Lost:
			warnings = append(warnings, fmt.Sprintf(
				"container %q: the framework of the new image (%s) has no cap on this pod; delete the pod and create it again with the image",
				c.Name, cmp.Or(now.Now, "none that is known")))
		}
	}
	return found, warnings, nil
}

// planImages updates the plan for new images of a live pod's slices. It returns the pod itself if no image changes.
func planImages(old, updated *corev1.Pod, governed governedFunc) (*corev1.Pod, error) {
	given, changed := changedImages(old, updated)
	if len(changed) == 0 {
		return updated, nil
	}
	in, err := governed()
	if err != nil || in.Policy.Off() {
		return updated, err
	}
	in.Pod = updated
	var images []plan.ImageChange
	for _, c := range changed {
		images = append(images, plan.ChangedImage(in.planning(), given, c))
	}
	out := updated.DeepCopy()
	given.WritePlanned(out, plan.PlanImages(given.PlannedOn(old), images))
	return out, nil
}

// withPlannedImages returns the old pod with the new one's plan, if its images lead to that plan.
func withPlannedImages(old, updated *corev1.Pod, governed governedFunc) (*corev1.Pod, error) {
	if updated.Annotations[api.AnnotationPlanned] == old.Annotations[api.AnnotationPlanned] {
		return old, nil
	}
	planned, err := planImages(old, updated, governed)
	if err != nil || planned.Annotations[api.AnnotationPlanned] != updated.Annotations[api.AnnotationPlanned] {
		return old, err
	}
	out := old.DeepCopy()
	out.Annotations[api.AnnotationPlanned] = planned.Annotations[api.AnnotationPlanned]
	// A webhook of an earlier build leaves these two as they are.
	if summary, ok := planned.Annotations[api.AnnotationSummary]; ok && summary == updated.Annotations[api.AnnotationSummary] {
		out.Annotations[api.AnnotationSummary] = summary
	}
	if tier, ok := planned.Labels[api.LabelTier]; ok && tier == updated.Labels[api.LabelTier] {
		metav1.SetMetaDataLabel(&out.ObjectMeta, api.LabelTier, tier)
	}
	return out, nil
}

// changedImages are the containers with a slice whose image the update changes.
func changedImages(old, updated *corev1.Pod) (given *promise.Promise, changed []*promise.Container) {
	var names []string
	for was, is := range podspec.ContainerPairs(old, updated) {
		if was.Image != is.Image && !podspec.IsOurs(is.Name) {
			names = append(names, is.Name)
		}
	}
	if len(names) == 0 || updated.DeletionTimestamp != nil {
		return nil, nil
	}
	if given = promise.ClaimedPromise(old); given == nil {
		return nil, nil
	}
	for i := range given.Containers {
		if slices.Contains(names, given.Containers[i].Name) {
			changed = append(changed, &given.Containers[i])
		}
	}
	return given, changed
}

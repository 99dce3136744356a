package promise

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// edit is one kind of thing that a Promise writes on a pod, with all that is ever done to it. Each kind is one file,
// edit_<kind>.go, and one line in edits.
//
// In Apply and Revert old is what the pod carries and next what it is to carry. Neither is nil: an empty Promise writes
// nothing.
type edit interface {
	// Apply writes what next gives, and removes all else under names of gpuslice's. It expects that Revert was called
	// before, where old wrote anything and is not next itself.
	Apply(pod *corev1.Pod, old, next *Promise)
	// Revert removes what old wrote and next does not write again, and all else under names of gpuslice's that next does
	// not write. What somebody changed since old wrote it is somebody else's, and stays.
	Revert(pod *corev1.Pod, old, next *Promise)
	// Restore puts back into updated what given wrote on old, where the update says nothing else of it.
	Restore(old, updated *corev1.Pod, given *Promise)
}

// edits are all kinds, in the order in which they are written: guard containers copy a mount of the pod's containers, and variables
// are restored once the shim's folder is.
// pools are those whose resources count as GPUs beside NVIDIA's own names.
func edits(pools []pools.Pool) editList {
	return editList{
		resourceEdit{pools},
		claimsEdit{},
		shimEdit{},
		envEdit{},
		argsEdit{},
		volumesEdit{},
		visibilityEdit{},
		guardEdit{},
		affinityEdit{},
		podEdit{},
		tolerationsEdit{},
		annotationsEdit{},
	}
}

type editList []edit

// Apply returns pod as the Promise says it should be: a copy, the pod itself is not changed. What an older Promise on
// the pod wrote and this one does not is reverted. Applying twice is applying once.
func (p *Promise) Apply(pod *corev1.Pod) *corev1.Pod {
	return edits(nil).apply(pod, carried(pod, p), p)
}

// apply is Apply to a pod that carries old.
func (l editList) apply(pod *corev1.Pod, old, next *Promise) *corev1.Pod {
	out := pod.DeepCopy()
	if old != next && old.Version != 0 { // else Apply itself removes what is not of next
		l.revert(out, old, next)
	}
	for _, e := range l {
		e.Apply(out, old, next)
	}
	return out
}

// carried returns the Promise on the pod: next itself where it is that one, an empty one where there is none that can be
// read.
func carried(pod *corev1.Pod, next *Promise) *Promise {
	text, ok := pod.Annotations[api.AnnotationPromise]
	if !ok {
		return new(Promise)
	}
	if text == next.Encode() {
		return next
	}
	old, err := Decode(text)
	if err != nil {
		return new(Promise)
	}
	return old
}

// Revert returns the pod as its author wrote it: without what a Promise that it brings along put there, and without
// containers and volumes under our names (copies of live pods, restored backups, a second pass over the same pod).
// Variables under our names stay, so that their author can be warned. It returns the pod itself where there is nothing
// to revert.
func Revert(pod *corev1.Pod, pools []pools.Pool) (authored *corev1.Pod, recorded *Promise, warnings []string) {
	text, ok := pod.Annotations[api.AnnotationPromise]
	if ok {
		p, err := Decode(text)
		if err != nil {
			warnings = append(warnings, "the annotation "+api.AnnotationPromise+" that the pod brings is not used: "+message.Shorten(err.Error(), 160))
		}
		recorded = p
	}
	unaccounted := unaccountedNames(pod, recorded)
	if !ok && len(unaccounted) == 0 {
		return pod, nil, warnings
	}
	if len(unaccounted) > 0 {
		warnings = append(warnings, "these names belong to gpuslice and are written anew: "+message.ShortList(unaccounted))
	}
	old := recorded
	if old == nil {
		old = new(Promise)
	}
	authored = pod.DeepCopy()
	edits(pools).revert(authored, old, new(Promise))
	return authored, recorded, warnings
}

func (l editList) revert(pod *corev1.Pod, old, next *Promise) {
	for _, e := range l {
		e.Revert(pod, old, next)
	}
}

// unaccountedNames lists containers, volumes and the label of ours that no Promise on the pod accounts for.
func unaccountedNames(pod *corev1.Pod, recorded *Promise) []string {
	var out []string
	for c := range podspec.EveryContainer(&pod.Spec) {
		if podspec.IsOurs(c.Name) && recorded == nil {
			out = append(out, "container "+c.Name)
		}
	}
	if _, ok := pod.Labels[api.LabelTier]; ok && recorded == nil {
		out = append(out, "label "+api.LabelTier)
	}
	for i := range pod.Spec.Volumes {
		if name := pod.Spec.Volumes[i].Name; podspec.IsOurs(name) && !recorded.HasVolume(name) {
			out = append(out, "volume "+name)
		}
	}
	return out
}

// Restore answers an UPDATE of a pod that holds a Promise: updated with the fields that are gpuslice's put back as old
// has them, whole lists in their order, so that a bare manifest applied over a live pod changes nothing. It denies a
// change of our labels on a live pod. Pods without a Promise, or being deleted, come back as they are.
//
// What a newer build gave is put back as far as this one knows it: both are called while one takes the other's place, and
// after a way back the pods of the newer one live on.
func Restore(old, updated *corev1.Pod) (*corev1.Pod, []api.Violation) {
	given, err := decodeAny(old.Annotations[api.AnnotationPromise], true)
	if old.Annotations[api.AnnotationPromise] == "" || err != nil || updated.DeletionTimestamp != nil {
		return updated, nil
	}
	out := updated.DeepCopy()
	for _, e := range edits(nil) {
		e.Restore(old, out, given)
	}
	return out, changedLabels(old, updated)
}

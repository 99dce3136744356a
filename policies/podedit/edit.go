package podedit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// edit is one kind of thing that a Promise writes on a pod, with all that is ever done to it. Each kind is one file,
// edit_<kind>.go, and one line in edits.
//
// In Apply and Revert old is the Promise that the pod carries and next the one that it is to carry. Neither is nil: an
// empty Promise writes nothing.
type edit interface {
	// Apply writes the edits of next, and removes all else under names of gpuslice's. It expects that Revert was called
	// before, if old wrote anything and is not next itself.
	Apply(pod *corev1.Pod, old, next *promise.Promise)
	// Revert removes the edits of old that next does not write again, and all else under names of gpuslice's that next
	// does not write. Later changes by others stay.
	Revert(pod *corev1.Pod, old, next *promise.Promise)
	// Restore puts the edits of given on old back into updated, unless the update changes them.
	Restore(old, updated *corev1.Pod, given *promise.Promise)
}

// edits are all kinds, in the order in which they are written: guard containers copy a mount of the pod's containers, and variables
// are restored once the shim's folder is.
// The resources of offered pools count as GPUs beside NVIDIA's own names.
func edits(offered []pools.Pool) editList {
	return editList{
		resourceEdit{offered},
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

// Apply returns pod as the Promise describes it: a copy, the pod itself is not changed. Edits of an older Promise on
// the pod that this one does not write are reverted. Applying twice is applying once.
func Apply(p *promise.Promise, pod *corev1.Pod) *corev1.Pod {
	old := new(promise.Promise)
	switch text := pod.Annotations[api.AnnotationPromise]; {
	case text == "":
	case text == p.Encode():
		old = p
	default:
		if there, err := checked(promise.Decode(text)); err == nil {
			old = there
		}
	}
	return edits(nil).apply(pod, old, p)
}

// apply is Apply to a pod that carries old.
func (l editList) apply(pod *corev1.Pod, old, next *promise.Promise) *corev1.Pod {
	out := pod.DeepCopy()
	if old != next && old.Version != 0 { // else Apply itself removes all but the edits of next
		l.revert(out, old, next)
	}
	for _, e := range l {
		e.Apply(out, old, next)
	}
	return out
}

// checked returns an error for a Promise that was read if it records, as another system's, resources that none has: whoever
// writes a pod can write a Promise too, and Revert parses their quantities and puts them back. Restore does not, and goes
// without this check. The resources that a newer build reads are unknown.
func checked(p *promise.Promise, err error) (*promise.Promise, error) {
	if err != nil || p.Newer() { // a newer build may read systems that this one does not know
		return p, err
	}
	for _, r := range p.Request.Containers {
		if !spellings.Resources(r.Foreign) {
			return nil, fmt.Errorf("read promise: request of container %s: no other system reads its resources", message.Quote(r.Name))
		}
	}
	return p, nil
}

// Revert returns the pod as its author wrote it: without the edits of a Promise that it brings along, and without
// containers and volumes under our names (copies of live pods, restored backups, a second pass over the same pod).
// Variables under our names stay, so that their author can be warned. It returns the pod itself if there is nothing to
// revert.
func Revert(pod *corev1.Pod, offered []pools.Pool) (authored *corev1.Pod, recorded *promise.Promise, warnings []string) {
	text, ok := pod.Annotations[api.AnnotationPromise]
	if ok {
		p, err := checked(promise.Decode(text))
		if err != nil {
			warnings = append(warnings, "the annotation "+api.AnnotationPromise+" that the pod brings is not used: "+shorten.Text(err.Error(), 160))
		}
		recorded = p
	}
	unaccounted := unaccountedNames(pod, recorded)
	if !ok && len(unaccounted) == 0 { // most pods: none is copied
		return pod, nil, warnings
	}
	if len(unaccounted) > 0 {
		warnings = append(warnings, "these names belong to gpuslice and are rewritten: "+message.ShortList(unaccounted))
	}
	old := recorded
	if old == nil {
		old = new(promise.Promise)
	}
	authored = pod.DeepCopy()
	edits(offered).revert(authored, old, new(promise.Promise))
	return authored, recorded, warnings
}

func (l editList) revert(pod *corev1.Pod, old, next *promise.Promise) {
	for _, e := range l {
		e.Revert(pod, old, next)
	}
}

// unaccountedNames lists containers, volumes and the label of ours that no Promise on the pod accounts for.
func unaccountedNames(pod *corev1.Pod, recorded *promise.Promise) []string {
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
// Edits of a newer build are put back as far as this one knows them: both are called during an upgrade, and after a
// rollback the pods of the newer one live on.
func Restore(old, updated *corev1.Pod) (*corev1.Pod, []api.Violation) {
	given, err := promise.DecodeNewer(old.Annotations[api.AnnotationPromise])
	if old.Annotations[api.AnnotationPromise] == "" || err != nil || updated.DeletionTimestamp != nil {
		return updated, nil
	}
	out := updated.DeepCopy()
	for _, e := range edits(nil) {
		e.Restore(old, out, given)
	}
	return out, changedLabels(old, updated)
}

package policies

import (
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Why pods pass that Verify looks at: stable words for metrics.
const (
	whyAsPromised = "as promised"
	whyNewer      = "as a newer version promised"
)

// Verify judges a pod as it is about to be stored, after every mutating webhook. promise is the one on it that is to be
// trusted (Keys.PromiseOf), nil where there is none. Such a pod must be as it was promised, and the rules and limits of
// the policy now in force must hold for it; a pod without one must not be one that Decide would have rewritten. What a
// policy or a node change made of its fit meanwhile is no reason: it was given what it was given.
//
// Quota is not looked at: see Holding.
func Verify(in Input, promise *Promise) Decision {
	if _, mirror := in.Pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return leaveAlone(whyMirror)
	}
	if in.Policy == nil || in.Policy.Mode == ModeOff {
		d := ungoverned(in)
		d.Warnings = nil // its author has read them already
		return d.relaxed(in.Namespace)
	}
	if promise == nil {
		return verifyUnpromised(in).Under(in.Policy).relaxed(in.Namespace)
	}
	return verifyPromised(in, promise).Under(in.Policy).relaxed(in.Namespace)
}

func verifyPromised(in Input, promise *Promise) Decision {
	if promise.Newer() {
		return leaveAlone(whyNewer)
	}
	if changed := Undone(in.Pod, promise, in.Pools); len(changed) > 0 {
		return refuse(Decision{}, Violation{RuleUndone, "the slice was changed after it was given", fmt.Sprintf(
			"%s; another webhook or a copied annotation did this; remove the annotation %s from the pod, or let gpuslice's mutating webhook run after the other one",
			shortList(changed), AnnotationPromise)})
	}
	d := leaveAlone(whyAsPromised)
	if again := decideGoverned(in); again.Outcome == Refused {
		standing := slices.DeleteFunc(again.Violations, func(v Violation) bool { return settled(v.Rule) })
		if len(standing) > 0 {
			return refuse(d, standing...)
		}
	}
	return d
}

// settled says that a rule is about reading the ask and finding a place for it, which was done when the Promise was made.
func settled(r Rule) bool {
	return slices.Contains([]Rule{RuleRequest, RuleFit, RuleFramework, RuleStrategy}, r)
}

func verifyUnpromised(in Input) Decision {
	d := decideGoverned(in)
	d.Warnings = nil
	if in.Policy.EnforcementMode == EnforceAudit {
		return d
	}
	if choosing := choosing(&in.Pod.Spec, in.Pools); d.Outcome == Voided && len(choosing) > 0 {
		return refuse(Decision{}, Violation{RuleUndone, "the pod chooses its devices", fmt.Sprintf(
			"%s by the variables %s or %s; remove them, and ask for %s: 1 where a GPU is needed", shortList(choosing), VarVisibleDevices, cudaVersion, ResourceGPU)})
	}
	switch d.Outcome {
	case Voided:
		return leaveAlone(d.Why)
	case Rewritten:
	default:
		return d
	}
	return refuse(Decision{}, Violation{RuleUndone, "the pod asks for a slice and was not given one", fmt.Sprintf(
		"gpuslice's mutating webhook was not asked, or its answer was lost; create the pod again, and if it is refused again tell those who run the cluster (policy %s)",
		in.Policy.Name)})
}

// Undone lists what differs on the pod from what the Promise says of it, as paths; none: it is as promised. Containers
// that reach for a GPU beside the promised ones count too.
func Undone(pod *corev1.Pod, promise *Promise, pools []Pool) []string {
	if promise.Newer() {
		return nil
	}
	out := strangers(pod, promise, pools)
	promised := Apply(pod, promise)
	promised.Annotations[AnnotationPromise] = pod.Annotations[AnnotationPromise]
	if observed, ok := pod.Annotations[AnnotationObserved]; ok {
		promised.Annotations[AnnotationObserved] = observed
	}
	if equality.Semantic.DeepEqual(pod.Spec, promised.Spec) && equality.Semantic.DeepEqual(pod.Annotations, promised.Annotations) {
		return out
	}
	var d differ
	tree := treeOf(pod)
	d.object("", tree, tree, treeOf(promised))
	return append(out, pathsOf(d.ops)...)
}

// pathsOf names the fields that operations change.
func pathsOf(ops []jsonpatch.Operation) (out []string) {
	for _, op := range ops {
		out = append(out, strings.ReplaceAll(strings.TrimPrefix(op.Path, "/"), "/", "."))
	}
	return out
}

// strangers are containers that the Promise knows nothing of and that could reach a GPU.
func strangers(pod *corev1.Pod, promise *Promise, pools []Pool) (out []string) {
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

package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// VerifyUpdate refuses an UPDATE that would change what is gpuslice's on a pod, or give a pod a Promise that was not
// created with one. A pod that is being deleted may change in every way: whatever holds it must be free to let go.
func VerifyUpdate(old, updated *corev1.Pod) []Violation {
	if updated.DeletionTimestamp != nil {
		return nil
	}
	if was, is := old.Annotations[AnnotationPromise], updated.Annotations[AnnotationPromise]; was == "" && is != "" {
		return []Violation{changed("annotation "+AnnotationPromise, "absent", "written by another hand")}
	}
	restored, violations := Restore(old, updated)
	var d differ
	tree := treeOf(updated)
	d.object("", tree, tree, treeOf(restored))
	if len(d.ops) == 0 {
		return violations
	}
	return append(violations, Violation{RuleImmutable, "what belongs to gpuslice cannot change on a live pod", fmt.Sprintf(
		"%s; leave it out of the change, or delete the pod and create it again", shortList(pathsOf(d.ops)))})
}

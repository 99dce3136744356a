package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// questioned refuses a pod that asks and is to be created all the same. A dry-run create of one is answered by a refusal
// that holds what was asked for, which needs no right but to create pods: the webhook says it, since here nobody knows.
func questioned(pod *corev1.Pod) *Violation {
	asked, ok := pod.Annotations[AnnotationReport]
	if !ok {
		return nil
	}
	return requestViolation("a question and no pod", fmt.Sprintf(
		"the annotation %s: %s is answered to a dry-run only; ask with kubectl create --dry-run=server or gpuslice quota, or remove it from a pod that is to run",
		AnnotationReport, quoteShort(asked)))
}

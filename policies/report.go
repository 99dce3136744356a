package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// isReportRequest reports whether the pod is no pod to run but a request for a report. A dry-run create of one is answered
// by a denial that holds the report, which needs no right but to create pods: the webhook does that, since nobody here
// knows what is a dry run.
func isReportRequest(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[AnnotationReport]
	return ok
}

// reportOutsideDryRun denies a report request that is to be created all the same.
func reportOutsideDryRun(pod *corev1.Pod) *Violation {
	return requestViolation("a question and no pod", fmt.Sprintf(
		"the annotation %s: %s is answered to a dry-run only; ask with kubectl create --dry-run=server or gpuslice quota, or remove it from a pod that is to run",
		AnnotationReport, quoteShort(pod.Annotations[AnnotationReport])))
}

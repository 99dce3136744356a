package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/request"
)

// isReportRequest reports whether the pod is no pod to run but a request for a report. A dry-run create of one is answered
// by a denial that holds the report, which needs no right but to create pods: the webhook does that, since nobody here
// knows what is a dry run.
func isReportRequest(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[api.AnnotationReport]
	return ok
}

// reportOutsideDryRun denies a report request that is to be created all the same.
func reportOutsideDryRun(pod *corev1.Pod) *api.Violation {
	return request.Invalid("a question and no pod", fmt.Sprintf(
		"the annotation %s: %s is answered to a dry-run only; use kubectl create --dry-run=server or gpuslice quota, or remove it from a pod that is to run",
		api.AnnotationReport, message.Quote(pod.Annotations[api.AnnotationReport])))
}

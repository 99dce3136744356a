package accounting

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// traitsOf reads a pod as the API server admits or stores it: the quality of service is the server's own verdict.
func traitsOf(pod *corev1.Pod) quota.Traits {
	deadline := pod.Spec.ActiveDeadlineSeconds
	return quota.Traits{
		PriorityClass: pod.Spec.PriorityClassName,
		Terminating:   deadline != nil && *deadline >= 0,
		BestEffort:    pod.Status.QOSClass == corev1.PodQOSBestEffort,
	}
}

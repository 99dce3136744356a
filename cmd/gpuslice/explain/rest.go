package explain

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// atRest reports whether the controller of a workload wants no other pod than there are, as its status has it: whatever was denied before
// is over. It is false where the status does not show it.
func atRest(workload metav1.Object) bool {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		wanted := orOne(w.Spec.Replicas)
		return w.Status.ObservedGeneration >= w.Generation && w.Status.Replicas == wanted && w.Status.UpdatedReplicas == wanted
	case *appsv1.ReplicaSet:
		return w.Status.ObservedGeneration >= w.Generation && w.Status.Replicas == orOne(w.Spec.Replicas)
	case *appsv1.StatefulSet:
		return w.Status.ObservedGeneration >= w.Generation && w.Status.Replicas == orOne(w.Spec.Replicas)
	case *appsv1.DaemonSet:
		return w.Status.ObservedGeneration >= w.Generation && w.Status.CurrentNumberScheduled == w.Status.DesiredNumberScheduled
	case *batchv1.Job:
		return w.Spec.Suspend != nil && *w.Spec.Suspend || w.Status.Active >= activeOf(w) || jobEnded(w)
	}
	return false
}

// orOne is a number with Kubernetes' default.
func orOne(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// activeOf is how many pods of a Job may run at once now.
func activeOf(job *batchv1.Job) int32 {
	parallel := orOne(job.Spec.Parallelism)
	if job.Spec.Completions == nil {
		return parallel
	}
	return min(parallel, *job.Spec.Completions-job.Status.Succeeded)
}

func jobEnded(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return true
		}
	}
	return false
}

package usage

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// boundAt is when the scheduler bound the pod to a node; 0: it has not.
func boundAt(pod *corev1.Pod) Second {
	if pod.Spec.NodeName == "" {
		return 0
	}
	return SecondOf(BoundAt(pod))
}

// BoundAt is when the scheduler bound a pod that is on a node, else when the node took it.
func BoundAt(pod *corev1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.UTC()
		}
	}
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.UTC()
	}
	return pod.CreationTimestamp.UTC()
}

// endedAt is when the last container of a terminated pod terminated. It is not known of a pod whose node was lost.
func endedAt(pod *corev1.Pod) (at Second, known bool) {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			switch state := &list[i].State; {
			case state.Running != nil:
				return 0, false
			case state.Terminated != nil && !state.Terminated.FinishedAt.IsZero():
				at, known = max(at, SecondOf(state.Terminated.FinishedAt.Time)), true
			}
		}
	}
	return at, known
}

// poolOf is the pool that the pod is in: its node's, else the one that was planned.
func poolOf(pod *corev1.Pod, given *promise.Promise, of func(node, resource string) string) string {
	for i := range given.Containers {
		if pool := of(pod.Spec.NodeName, given.Containers[i].Resource); pool != "" {
			return shortened(pool)
		}
	}
	return shortened(given.Planned.Pool)
}

func shortened(name string) string { return name[:min(len(name), maxName)] }

// labelOf is the pod's label as KEY=VALUE; "": it has none.
func labelOf(pod metav1.Object, key string) string {
	if value, ok := pod.GetLabels()[key]; ok && key != "" {
		return key + "=" + value
	}
	return ""
}

// rateOf is the holding of a pod of that charge.
func rateOf(charge quota.Charge) Amount {
	return Amount{Memory: int64(charge.Memory), Devices: int64(charge.Devices)}
}

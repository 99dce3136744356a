package accounting

import (
	"fmt"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// RolloutRemedy is the remedy if a Deployment's pod finds the quota full: a rolling update deletes the replaced pods
// only once a new one runs. The pod alone does not show whether an update is going on, so the remedy says where it holds. It is ""
// unless the pod would fit without the existing pods.
func RolloutRemedy(pod *corev1.Pod, excess []quota.Excess) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() ||
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == "" {
		return ""
	}
	for _, e := range excess {
		if e.Used == "0" || e.Requested == "unknown" {
			return ""
		}
	}
	return "; raise the quota, or write fewer replicas; a rolling update, which needs room for one more pod, also goes on with strategy.rollingUpdate.maxSurge: 0"
}

// RolloutWarning warns of a Deployment whose replicas, each with this holding, are within the quota, and whose rolling update creates so
// many pods (surge) before it deletes one that they are not. It knows of no other pods in the budget.
func RolloutWarning(limits quota.Quota, holding quota.Holding, replicas, surge int) string {
	if surge < 1 {
		return ""
	}
	excess := func(pods int) []quota.Excess {
		return limits.Excess(func(scope quota.Scope) quota.Charge { return times(holding.In(scope), int64(pods-1)) }, holding)
	}
	if len(excess(max(replicas, 1))) > 0 {
		return ""
	}
	over := excess(max(replicas, 1) + surge)
	if len(over) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"the quota has no room for a rolling update, which creates %d more: %s; raise the quota, or set strategy.rollingUpdate.maxSurge: 0",
		surge, quota.Denial(over).Detail)
}

// Pods are pods that run at once, each with the same holding.
type Pods struct {
	Holding quota.Holding
	Count   int
}

// RoomWarning warns of pods of a workload that are not all within the quota; "": they are. entry is the first of which some are not, after
// those before it. It knows of no other pods in the budget.
func RoomWarning(limits quota.Quota, all []Pods) (entry int, warning string) {
	for i, p := range all {
		excess := func(pods int) []quota.Excess {
			return limits.Excess(func(scope quota.Scope) quota.Charge {
				used := times(p.Holding.In(scope), int64(pods-1))
				for _, before := range all[:i] {
					used = used.Plus(times(before.Holding.In(scope), int64(before.Count)))
				}
				return used
			}, p.Holding)
		}
		room := sort.Search(p.Count, func(n int) bool { return len(excess(n+1)) > 0 })
		switch {
		case room == p.Count:
		case room == 0 && i == 0:
			return i, fmt.Sprintf("the quota has no room for one such pod: %s; raise the quota, or request less", quota.Denial(excess(1)).Detail)
		default:
			return i, fmt.Sprintf("the quota has room for %d of the %d pods: %s; raise the quota, or request fewer pods or less for each",
				room, p.Count, quota.Denial(excess(room+1)).Detail)
		}
	}
	return 0, ""
}

// times is a charge of so many pods.
func times(c quota.Charge, pods int64) quota.Charge {
	product := func(amount int64) int64 {
		if pods > 0 && amount > quantity.MaxCharge/pods {
			return quantity.MaxCharge
		}
		return amount * pods
	}
	return quota.Charge{Memory: quantity.MiB(product(int64(c.Memory))), Slices: product(c.Slices),
		GPUs: product(c.GPUs), Devices: c.Devices.Times(pods)}
}

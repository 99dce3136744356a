package accounting

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// RolloutRemedy is the remedy if a Deployment's pod finds the quota full: a rolling update deletes the replaced pods
// only once a new one runs. The pod alone does not show whether an update is going on. It is "" unless the pod would
// fit without the existing pods.
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
	return "; a rolling update needs room for one more pod: raise the quota, or set strategy.rollingUpdate.maxSurge: 0 in the Deployment"
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

package policies

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// rolloutRemedy is what to do where a Deployment's pod finds the quota full: the pods that a rolling update replaces are
// deleted only once a new one runs. Whether an update is going on is not known of the pod alone. Without the pods that are
// there the pod would have room; else it is "".
func rolloutRemedy(pod *corev1.Pod, excess []quota.Excess) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() || pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == "" {
		return ""
	}
	for _, e := range excess {
		if e.Used == "0" || e.Requested == "unknown" {
			return ""
		}
	}
	return "; a rolling update needs room for one more pod: raise the quota, or set strategy.rollingUpdate.maxSurge: 0 in the Deployment"
}

// RolloutWarning warns of a Deployment whose replicas are within the quota, and whose rolling update creates so many pods
// (surge) before it deletes one that they are not. It knows of no other pods in the budget.
func (in Input) RolloutWarning(given *promise.Promise, replicas, surge int) string {
	if given == nil || in.Policy.Off() || surge < 1 {
		return ""
	}
	limits := in.Policy.QuotaFor(in.Namespace.Name)
	holding := in.HoldingWithClaims(given.Holding(given.Apply(in.Pod)), given)
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
	return fmt.Sprintf("the quota has no room for a rolling update, which creates %d more: %s; raise the quota, or set strategy.rollingUpdate.maxSurge: 0",
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
	return quota.Charge{Memory: quantity.MiB(product(int64(c.Memory))), Slices: product(c.Slices), GPUs: product(c.GPUs), Devices: c.Devices.Times(pods)}
}

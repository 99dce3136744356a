package preview

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gpuslice/gpuslice/policies/accounting"
)

// warnOfQuota warns of results whose pods, so many each, are not all within the quota: with the first of which some are not.
func (e *Engine) warnOfQuota(all []Result, pods func(result int) int) {
	var charged []accounting.Pods
	var of []*Result
	for i := range all {
		if r := &all[i]; r.After != nil && r.Holding != nil {
			charged, of = append(charged, accounting.Pods{Holding: *r.Holding, Count: pods(i)}), append(of, r)
		}
	}
	if len(of) == 0 {
		return
	}
	limits := e.Cluster.Input(of[0].Namespace).Policy.QuotaFor(of[0].Namespace)
	if i, warning := accounting.RoomWarning(limits, charged); warning != "" {
		of[i].Decision.Warnings = append(of[i].Decision.Warnings, warning)
	}
}

// rollout warns of a Deployment whose pods fit the quota, but not the pods of a rolling update; "": it does not.
func (e *Engine) rollout(r *Result) string {
	var deployment appsv1.Deployment
	if r.After == nil || r.Holding == nil || r.Decision.Promise == nil ||
		r.Kind != "Deployment" || r.APIVersion != appsv1.SchemeGroupVersion.String() || json.Unmarshal(r.Raw, &deployment) != nil {
		return ""
	}
	replicas := 1
	if deployment.Spec.Replicas != nil {
		replicas = int(*deployment.Spec.Replicas)
	}
	quota := e.Cluster.Input(r.Namespace).Policy.QuotaFor(r.Namespace)
	return accounting.RolloutWarning(quota, *r.Holding, replicas, surge(deployment.Spec.Strategy, replicas))
}

// surge is how many pods a rolling update creates before it deletes one. Kubernetes rounds up; its default is a quarter.
func surge(strategy appsv1.DeploymentStrategy, replicas int) int {
	if strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0
	}
	most := intstr.FromString("25%")
	if r := strategy.RollingUpdate; r != nil && r.MaxSurge != nil {
		most = *r.MaxSurge
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&most, replicas, true)
	if err != nil {
		return 0
	}
	return n
}

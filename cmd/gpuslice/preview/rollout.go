package preview

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// rollout warns of a Deployment whose pods fit the quota, but not those of a rolling update; "": it does not.
func (e *Engine) rollout(o manifest.Object, pod json.RawMessage, d policies.Decision) string {
	var deployment appsv1.Deployment
	if o.Kind != "Deployment" || o.APIVersion != appsv1.SchemeGroupVersion.String() || json.Unmarshal(o.Raw, &deployment) != nil {
		return ""
	}
	raw, violation, err := rawpod.Decode(pod)
	if err != nil || violation != nil {
		return ""
	}
	in := e.Cluster.InputOf(o.Namespace, raw.Pod)
	replicas := 1
	if deployment.Spec.Replicas != nil {
		replicas = int(*deployment.Spec.Replicas)
	}
	if d.Promise == nil || in.Policy.Off() {
		return ""
	}
	holding := in.GPUClaims().Holding(accounting.Holding(d.Promise, podedit.Apply(d.Promise, in.Pod)), d.Promise)
	return accounting.RolloutWarning(in.Policy.QuotaFor(in.Namespace.Name), holding, replicas, surge(deployment.Spec.Strategy, replicas))
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

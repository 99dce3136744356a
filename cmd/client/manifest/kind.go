package manifest

import (
	"slices"
	"strings"
)

// BuiltIn reports whether the kind is one whose template the API server validates itself.
func (o Object) BuiltIn() bool {
	group, _, grouped := strings.Cut(o.APIVersion, "/")
	switch {
	case !grouped:
		return o.Kind == "ReplicationController"
	case group == "apps":
		return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, o.Kind)
	}
	return group == "batch" && (o.Kind == "Job" || o.Kind == "CronJob")
}

// inherited reports whether the controller of the kind gives its pods the object's own labels and annotations.
func (o Object) inherited() bool {
	return slices.Contains([]string{"InferenceService", "LLMInferenceService", "Notebook"}, o.Kind)
}

// RunsPods reports whether a controller that Kubernetes does not have creates pods for the kind, or for others that refer to it, as far as
// its name shows.
func (o Object) RunsPods() bool {
	group, _, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped || group == "apps" || group == "batch" {
		return false
	}
	return strings.HasSuffix(o.Kind, "Job") || strings.HasSuffix(o.Kind, "Deployment") || slices.Contains([]string{
		"InferenceService", "LLMInferenceService", "NIMService", "RayCluster",
		"RayService", "Notebook", "SparkApplication", "ScheduledSparkApplication",
		"Workflow", "CronWorkflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "TaskRun", "PipelineRun", "JobSet", "LeaderWorkerSet", "Workspace", "Model",
	}, o.Kind)
}

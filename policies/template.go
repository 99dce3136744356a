package policies

import "gomodules.xyz/jsonpatch/v2"

// CheckTemplate looks for fractional GPU quantities in the pod template of a workload (Deployment, StatefulSet,
// DaemonSet, ReplicaSet, Job, CronJob), which Kubernetes refuses there. kind is the workload's kind, tree its JSON.
// Under TemplatesCheck it returns the refusal that says what to write instead, under TemplatesRewrite the operations
// that write it. Nothing found, or no policy: neither.
func CheckTemplate(kind string, tree map[string]any, p *Policy) (*Violation, []jsonpatch.Operation) {
	return nil, nil
}

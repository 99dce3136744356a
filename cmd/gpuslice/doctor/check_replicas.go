package doctor

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/finding"
)

// checkReplicas looks whether anybody answers.
func checkReplicas(f *Facts) []finding.Finding {
	if f.unread(whatWebhook) {
		return nil
	}
	d := f.Deployment
	if d == nil {
		return []finding.Finding{finding.New(finding.Problem, "there is no webhook in namespace %s: pods pass as they are, or are refused, as each entry's failurePolicy says", f.System).
			With("deployments", "", "none is labelled app.kubernetes.io/component: webhook").MendBy("kubectl apply -f deploy/40-deployment.yaml")}
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	where, ready := object("deployment", d.Namespace, d.Name), d.Status.ReadyReplicas
	found := finding.New(finding.OK, "%d of %d replicas are ready", ready, wanted)
	switch {
	case ready == 0:
		found = finding.New(finding.Problem, "no replica of the webhook is ready")
	case ready < wanted:
		found = finding.New(finding.Warning, "%d of %d replicas are ready", ready, wanted)
	case wanted < 2:
		found = finding.New(finding.Warning, "one replica alone: while its node is drained nobody answers").MendBy("kubectl -n %s scale deployment %s --replicas=3", d.Namespace, d.Name)
	}
	found = found.With(where, "status.readyReplicas", decimal(ready))
	if found.Level == finding.OK || found.Mend != "" {
		return []finding.Finding{found}
	}
	for _, p := range f.Pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
				found = found.With(object("pod", p.Namespace, p.Name), "status.conditions[Ready]", c.Reason+" "+c.Message)
			}
		}
	}
	return []finding.Finding{found.MendBy("kubectl -n %s describe deployment %s; kubectl -n %s logs deployment/%s", d.Namespace, d.Name, d.Namespace, d.Name)}
}

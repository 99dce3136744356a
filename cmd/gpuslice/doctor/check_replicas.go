package doctor

import (
	corev1 "k8s.io/api/core/v1"
)

// checkReplicas looks for ready replicas.
func checkReplicas(f *Facts) []Finding {
	if f.unread(whatWebhook) {
		return nil
	}
	d := f.Deployment
	if d == nil {
		return []Finding{newFinding(Problem,
			"there is no webhook in namespace %s: pods stay as they are, or are denied, by each entry's failurePolicy", f.System).
			With("deployments", "", "none is labelled app.kubernetes.io/component: webhook").WithRemedy("%s", f.reinstall())}
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	where, ready := object("deployment", d.Namespace, d.Name), d.Status.ReadyReplicas
	found := newFinding(OK, "%d of %d replicas are ready", ready, wanted)
	switch {
	case ready == 0:
		found = newFinding(Problem, "no replica of the webhook is ready")
	case ready < wanted:
		found = newFinding(Warning, "%d of %d replicas are ready", ready, wanted)
	case wanted < 2:
		found = newFinding(Warning, "one replica alone: while its node is drained nothing answers").
			WithRemedy("kubectl -n %s scale deployment %s --replicas=3", d.Namespace, d.Name)
	}
	found = found.With(where, "status.readyReplicas", decimal(ready))
	if found.Level == OK || found.Remedy != "" {
		return []Finding{found}
	}
	for _, p := range f.Pods {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
				found = found.With(object("pod", p.Namespace, p.Name), "status.conditions[Ready]", c.Reason+" "+c.Message)
			}
		}
	}
	return []Finding{found.WithRemedy("kubectl -n %s describe deployment %s; kubectl -n %s logs deployment/%s",
		d.Namespace, d.Name, d.Namespace, d.Name)}
}

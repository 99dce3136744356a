package doctor

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// agentMode is the value of guard.mode in a policy whose pods an agent enforces.
const agentMode = "agent"

// checkAgents looks for the agents where a policy has them enforce: without one a pod stays pending.
func checkAgents(f *Facts) []Finding {
	policy := f.agentPolicy()
	if policy == "" || f.unread(whatDaemonSets) {
		return nil
	}
	i := slices.IndexFunc(f.DaemonSets, func(d *appsv1.DaemonSet) bool { return d.Namespace == f.System && d.Name == "gpuslice-agent" })
	if i < 0 {
		return []Finding{newFinding(Problem, "a policy has the node's agent enforce, and there is none: its pods stay pending").With(policy, "guard.mode", agentMode).
			WithRemedy("install the agent (chart: agent.enabled=true), or set guard: {mode: sidecar} in the policy")}
	}
	agents := f.DaemonSets[i]
	wanted, ready := int(agents.Status.DesiredNumberScheduled), int(agents.Status.NumberReady)
	where := newFinding(OK, "%d of %d agents enforce", ready, wanted).With(daemonSet(agents), "", "")
	if gpus := len(gpuNodes(f)); wanted < gpus {
		return []Finding{newFinding(Problem, "agents are for %d of %d nodes with GPUs: its pods start on no other", wanted, gpus).With(policy, "guard.mode", agentMode).
			With(daemonSet(agents), "status.desiredNumberScheduled", strconv.Itoa(wanted)).WithRemedy("label the nodes, or change the DaemonSet's nodeSelector (chart: agent.nodeSelector)")}
	}
	if ready < wanted {
		where.Level = Warning
		return []Finding{where.WithRemedy("see the pods that are not ready: kubectl -n %s get pods -l app.kubernetes.io/component=agent", f.System)}
	}
	return []Finding{where}
}

// agentPolicy is a policy whose pods an agent enforces; empty: there is none.
func (f *Facts) agentPolicy() string {
	for _, g := range f.Governed() {
		if p := g.Input.Policy; p.Guard.Mode == agentMode && (p.Guard.Enabled == nil || *p.Guard.Enabled) {
			return "policy/" + p.Name
		}
	}
	return ""
}

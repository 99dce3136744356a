package doctor

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
)

// agentMode is the value of guard.mode in a policy whose pods an agent enforces.
const agentMode = "agent"

// checkAgents looks for the agents: without one a pod stays pending where a policy has them alone enforce, and elsewhere
// gets a sidecar.
func checkAgents(f *Facts) []Finding {
	policy := f.agentPolicy()
	i := slices.IndexFunc(f.DaemonSets, func(d *appsv1.DaemonSet) bool { return d.Namespace == f.System && d.Name == "gpuslice-agent" })
	switch {
	case f.unread(whatDaemonSets), policy == "" && i < 0:
		return nil
	case i < 0:
		return []Finding{newFinding(Problem, "a policy has the node's agent enforce, and there is none: its pods stay pending").
			With(policy, "guard.mode", agentMode).
			WithRemedy("install the agent (chart: agent.enabled=true), or set guard: {mode: sidecar} in the policy")}
	}
	agents := f.DaemonSets[i]
	wanted, ready, gpus := int(agents.Status.DesiredNumberScheduled), int(agents.Status.NumberReady), len(gpuNodes(f))
	switch {
	case wanted < gpus:
		found := newFinding(Warning, "agents are for %d of %d nodes with GPUs: in a pool with the others, slices get a sidecar", wanted, gpus)
		if policy != "" {
			found = newFinding(Problem, "agents are for %d of %d nodes with GPUs: a policy's pods start on no other", wanted, gpus).
				With(policy, "guard.mode", agentMode)
		}
		return []Finding{found.With(daemonSet(agents), "status.desiredNumberScheduled", strconv.Itoa(wanted)).
			WithRemedy("label the nodes, or change the DaemonSet's nodeSelector (chart: agent.nodeSelector)")}
	case ready < wanted:
		return []Finding{newFinding(Warning, "%d of %d agents enforce", ready, wanted).With(daemonSet(agents), "", "").
			WithRemedy("see the pods that are not ready: kubectl -n %s get pods -l app.kubernetes.io/component=agent", f.System)}
	}
	return []Finding{newFinding(OK, "%d of %d agents enforce", ready, wanted).With(daemonSet(agents), "", "")}
}

// agentPolicy is a policy whose pods only an agent enforces; empty: there is none.
func (f *Facts) agentPolicy() string {
	for _, g := range f.Governed() {
		if p := g.Input.Policy; p.Guard.Mode == agentMode && (p.Guard.Enabled == nil || *p.Guard.Enabled) {
			return "policy/" + p.Name
		}
	}
	return ""
}

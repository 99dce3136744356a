package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/installed"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// Values of guard.access in a policy.
const (
	accessAuto   = "auto"
	accessEnv    = "env"
	accessVolume = "volume"
)

// checkGuardAccess compares policies on the guard's access to NVML with the permissions of the container toolkit and
// the GPU Operator. A guard that reaches nothing enforces nothing.
func checkGuardAccess(f *Facts) []Finding {
	var all []Finding
	seen := map[string]bool{}
	for _, g := range f.Governed() {
		p := g.Input.Policy
		if seen[p.Name] || p.Guard.Mode == agentMode || p.Guard.Enabled != nil && !*p.Guard.Enabled {
			continue
		}
		seen[p.Name] = true
		chosen, findings := chosenAccess(g)
		all = append(all, findings...)
		all = append(all, f.guardAccess(p, chosen)...)
	}
	return all
}

// isAuto reports whether the cluster decides about the guard's access, and not the policy.
func isAuto(p *config.Policy) bool {
	return (p.Guard.Access == "" || p.Guard.Access == accessAuto) && p.Guard.RuntimeClassName == ""
}

// chosenAccess is the choice of guard.access: auto on each pool with nodes, and its reason. The first way is returned
// beside.
func chosenAccess(g Governed) (first string, all []Finding) {
	p := g.Input.Policy
	if !isAuto(p) {
		return p.Guard.Access, nil
	}
	for i := range g.Input.Pools {
		pool := &g.Input.Pools[i]
		how, why := policies.GuardAccess(g.Input, pool)
		if len(pool.Nodes) == 0 || pool.GuardedByAgents(p.Guard.Mode) || pool.Sharing().Tier == api.TierHardware {
			continue
		}
		found := newFinding(OK, "guard.access: auto has chosen how the guard reaches the driver: %s", how)
		if why != "" {
			found = newFinding(Warning, "no guard is planned: %s", why)
		}
		found = found.With("policy/"+p.Name, "guard.access", cmp.Or(p.Guard.Access, accessAuto+" (default)"))
		if at := slices.IndexFunc(all, func(f Finding) bool { return f.Summary == found.Summary }); at >= 0 {
			all[at] = all[at].With("pool/"+pool.Name, "", "")
			continue
		}
		first = cmp.Or(first, how)
		all = append(all, found.With("pool/"+pool.Name, "", ""))
	}
	return first, all
}

// guardAccess compares an access with the cluster's settings: the policy's, or the one that was chosen.
func (f *Facts) guardAccess(p *config.Policy, access string) (all []Finding) {
	where, class := "policy/"+p.Name, p.Guard.RuntimeClassName
	byVariable := access == "" && !isAuto(p) || strings.HasPrefix(access, accessEnv)
	for _, d := range parts(f, nvidia.ContainerToolkit) {
		envvars, _, _ := variable(d, envvarSetting)
		mounts, _, _ := variable(d, mountsSetting)
		switch {
		case byVariable && strings.EqualFold(envvars, "false"):
			all = append(all, newFinding(Problem, "the guard requests devices by a variable, which the container toolkit ignores: the guard sees no GPU, and enforces nothing").
				With(where, "guard.access", accessEnv).With(daemonSet(d), "env["+envvarSetting+"]", envvars).
				WithRemedy("set guard: {access: volume} in the policy"))
		case access == accessVolume && !strings.EqualFold(mounts, "true"):
			all = append(all, newFinding(Problem, "the guard requests devices by a mount, which the container toolkit ignores: the guard sees no GPU, and enforces nothing").
				With(where, "guard.access", access).With(daemonSet(d), "env["+mountsSetting+"]", "not true").
				WithRemedy("set %s=true in the container toolkit, together with the settings of visible-devices", mountsSetting))
		}
	}
	if class != "" && !f.unread(whatRuntimes) && !slices.ContainsFunc(f.Runtimes, func(r *nodev1.RuntimeClass) bool { return r.Name == class }) {
		all = append(all, newFinding(Problem, "a policy names a runtime class that does not exist: its pods with a guard are denied").With(where, "guard.runtimeClassName", class).
			WithRemedy("remove the field; the guard then takes the class that there is"))
	}
	if isAuto(p) {
		return all
	}
	for _, o := range f.ClusterPolicies {
		all = append(all, withEvidence(operatorAccess(where, p, o))...)
	}
	return all
}

// operatorAccess is the policy setting that the GPU Operator's way to pass devices needs.
func operatorAccess(where string, p *config.Policy, o *pools.ClusterPolicy) Finding {
	byVariable := p.Guard.Access == "" || p.Guard.Access == accessEnv
	found := newFinding(Warning, "the GPU Operator passes devices by CDI, and the guard requests them by a variable: without NVIDIA's runtime the guard sees no GPU")
	switch {
	case !byVariable || !o.Operator().CDI:
		return found
	case o.Operator().NRIPlugin:
		return found.With(where, "guard.access", accessEnv).With(clusterPolicy(o), "spec.cdi.nriPluginEnabled", "true").
			WithRemedy("set guard: {access: cdi} in the policy, in namespaces listed in the operator's NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES")
	case p.Guard.RuntimeClassName == "" && p.Pod.RuntimeClassName == "":
		return found.With(where, "guard.runtimeClassName", "not set").With(clusterPolicy(o), "spec.cdi.enabled", "true").
			WithRemedy("remove guard.access from the policy: auto takes the runtime class that there is")
	}
	return found
}

// checkGuardFailures reports the pools on which the last guards could not read the GPUs.
func checkGuardFailures(f *Facts) []Finding {
	var all []Finding
	for _, one := range guardaccess.Of(f.State).Current(f.Now) {
		all = append(all, guardFailure(one).WithRemedy("read the guard's log there (kubectl logs POD -c gpuslice-guard) and repair its access; the next guard that reads "+
			"the GPUs ends this. Where every policy demands a guard: kubectl annotate configmap %s -n %s %s-", webhookcluster.StateName, f.System, guardaccess.Annotation))
	}
	return all
}

func guardFailure(one guardaccess.Failure) Finding {
	names := slices.Sorted(maps.Keys(one.Namespaces))
	found := newFinding(Note, "a guard could not read the GPUs; if another one cannot, no guard is counted on there")
	reasons := guardaccess.Failures{one}.Reasons(one.Pool, names[0])
	switch {
	case len(names) > 1:
		found = newFinding(Warning, "the last guards could not read the GPUs of a pool: pods are planned there without one")
	case len(reasons) > 0:
		found = newFinding(Warning, "a namespace's last guards could not read the GPUs of a pool: its pods are planned there without one")
	}
	found = found.With("pool/"+one.Pool, "guard.access", one.Access)
	for _, name := range names {
		guards := one.Namespaces[name]
		found = found.With("namespace/"+name, "guard", fmt.Sprintf("%s (started %s)", guards.Reason, guards.Last.Format("2006-01-02 15:04")))
	}
	return found
}

// alwaysPullImages is the admission plugin that sets the pull policy of every container, the guard's too.
const alwaysPullImages = "AlwaysPullImages"

// checkImagePulls looks for the admission plugin, with which each start of a pod pulls the guard's image with the
// credentials of the pod. Only the flags of an API server that runs as a pod show it.
func checkImagePulls(f *Facts) []Finding {
	if guard := installed.Guard(f.Deployment); guard == nil || guard.PullSecret != "" {
		return nil
	}
	found := newFinding(Note, "every pod pulls the guard's image at each start, with its own credentials: if the registry requires credentials, tenants' namespaces need them")
	for _, p := range f.APIServers {
		for _, c := range p.Spec.Containers {
			if plugins, _ := installed.Argument(c, "enable-admission-plugins"); strings.Contains(plugins, alwaysPullImages) {
				found = found.With(object("pod", p.Namespace, p.Name), "--enable-admission-plugins", alwaysPullImages)
			}
		}
	}
	return withEvidence(found.WithRemedy("name a pull secret that exists in tenants' namespaces: %s --set guard.image.pullSecret=NAME", f.upgrade()))
}

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
		return []Finding{newFinding(Problem, "a policy has the node's agent enforce, and there is none: its pods stay pending").With(policy, "guard.mode", agentMode).
			WithRemedy("install the agent (chart: agent.enabled=true), or set guard: {mode: sidecar} in the policy")}
	}
	agents := f.DaemonSets[i]
	wanted, ready, gpus := int(agents.Status.DesiredNumberScheduled), int(agents.Status.NumberReady), len(gpuNodes(f))
	switch {
	case wanted < gpus:
		found := newFinding(Warning, "agents are for %d of %d nodes with GPUs: in a pool with the others, slices get a sidecar", wanted, gpus)
		if policy != "" {
			found = newFinding(Problem, "agents are for %d of %d nodes with GPUs: a policy's pods start on no other", wanted, gpus).With(policy, "guard.mode", agentMode)
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

package doctor

import (
	"cmp"
	"slices"
	"strings"

	nodev1 "k8s.io/api/node/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
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
			all = append(all, newFinding(Problem,
				"the guard requests devices by a variable, which the container toolkit ignores: the guard sees no GPU, and enforces nothing").
				With(where, "guard.access", accessEnv).With(daemonSet(d), "env["+envvarSetting+"]", envvars).
				WithRemedy("set guard: {access: volume} in the policy"))
		case access == accessVolume && !strings.EqualFold(mounts, "true"):
			all = append(all, newFinding(Problem,
				"the guard requests devices by a mount, which the container toolkit ignores: the guard sees no GPU, and enforces nothing").
				With(where, "guard.access", access).With(daemonSet(d), "env["+mountsSetting+"]", "not true").
				WithRemedy("set %s=true in the container toolkit, together with the settings of visible-devices", mountsSetting))
		}
	}
	if class != "" && !f.unread(whatRuntimes) &&
		!slices.ContainsFunc(f.Runtimes, func(r *nodev1.RuntimeClass) bool { return r.Name == class }) {
		all = append(all, newFinding(Problem, "a policy names a runtime class that does not exist: its pods with a guard are denied").
			With(where, "guard.runtimeClassName", class).
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
	found := newFinding(Warning,
		"the GPU Operator passes devices by CDI, and the guard requests them by a variable: without NVIDIA's runtime the guard sees no GPU")
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

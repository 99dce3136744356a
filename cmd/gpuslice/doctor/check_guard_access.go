package doctor

import (
	"slices"
	"strings"

	nodev1 "k8s.io/api/node/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/nvidia"
	"github.com/gpuslice/gpuslice/policies/config"
)

// Values of guard.access in a policy.
const (
	accessEnv    = "env"
	accessVolume = "volume"
)

// checkGuardAccess compares how policies let the guard reach NVML with what the container toolkit and the GPU Operator
// allow. A guard that reaches nothing enforces nothing.
func checkGuardAccess(f *Facts) []Finding {
	var all []Finding
	seen := map[string]bool{}
	for _, g := range f.Governed() {
		p := g.Input.Policy
		if seen[p.Name] || p.Guard.Enabled != nil && !*p.Guard.Enabled {
			continue
		}
		seen[p.Name] = true
		all = append(all, f.guardAccess(p)...)
	}
	return all
}

func (f *Facts) guardAccess(p *config.Policy) (all []Finding) {
	where, access, class := "policy/"+p.Name, p.Guard.Access, p.Guard.RuntimeClassName
	byVariable := access == "" || access == accessEnv
	for _, d := range parts(f, toolkit) {
		envvars, _, _ := variable(d, envvarSetting)
		mounts, _, _ := variable(d, mountsSetting)
		switch {
		case byVariable && strings.EqualFold(envvars, "false"):
			all = append(all, newFinding(Problem, "the guard asks for devices by a variable, which the container toolkit ignores: the guard sees no GPU, and enforces nothing").
				With(where, "guard.access", accessEnv).With(daemonSet(d), "env["+envvarSetting+"]", envvars).
				WithRemedy("set guard: {access: volume} in the policy"))
		case access == accessVolume && !strings.EqualFold(mounts, "true"):
			all = append(all, newFinding(Problem, "the guard asks for devices by a mount, which the container toolkit ignores: the guard sees no GPU, and enforces nothing").
				With(where, "guard.access", access).With(daemonSet(d), "env["+mountsSetting+"]", "not true").
				WithRemedy("set %s=true in the container toolkit, together with the settings of visible-devices", mountsSetting))
		}
	}
	if class != "" && !f.unread(whatRuntimes) && !slices.ContainsFunc(f.Runtimes, func(r *nodev1.RuntimeClass) bool { return r.Name == class }) {
		all = append(all, newFinding(Problem, "a policy names a runtime class that does not exist: its pods with a guard are denied").With(where, "guard.runtimeClassName", class).
			WithRemedy("remove guard.runtimeClassName; with the GPU Operator's NRI plugin set guard: {access: cdi}"))
	}
	for _, o := range f.ClusterPolicies {
		all = append(all, withEvidence(operatorAccess(where, p, o))...)
	}
	return all
}

// operatorAccess is what the GPU Operator's way to pass devices asks of a policy.
func operatorAccess(where string, p *config.Policy, o *nvidia.ClusterPolicy) Finding {
	byVariable := p.Guard.Access == "" || p.Guard.Access == accessEnv
	found := newFinding(Warning, "the GPU Operator passes devices by CDI, and the guard asks for them by a variable: without NVIDIA's runtime the guard sees no GPU")
	switch {
	case !byVariable || !o.CDI():
		return found
	case o.NRI():
		return found.With(where, "guard.access", accessEnv).With(clusterPolicy(o), "spec.cdi.nriPluginEnabled", "true").
			WithRemedy("set guard: {access: cdi} in the policy, in namespaces listed in the operator's NRI_MANAGEMENT_CDI_DEVICE_NAMESPACES")
	case p.Guard.RuntimeClassName == "" && p.Pod.RuntimeClassName == "":
		return found.With(where, "guard.runtimeClassName", "not set").With(clusterPolicy(o), "spec.cdi.enabled", "true").
			WithRemedy("set guard: {runtimeClassName: nvidia} in the policy")
	}
	return found
}

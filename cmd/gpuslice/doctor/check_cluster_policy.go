package doctor

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// checkClusterPolicy reads the GPU Operator's configuration.
func checkClusterPolicy(f *Facts) []Finding {
	var all []Finding
	for _, p := range f.ClusterPolicies {
		spec, where := &p.Spec, clusterPolicy(p)
		found := newFinding(OK, "the GPU Operator deploys NVIDIA's software")
		for _, e := range []Evidence{
			{where, "spec.driver.version", spec.Driver.Version}, {where, "spec.toolkit.version", spec.Toolkit.Version},
			{where, "spec.devicePlugin.version", spec.DevicePlugin.Version}, {where, "spec.devicePlugin.config.name", spec.DevicePlugin.Config.Name},
			{where, "spec.mig.strategy", spec.MIG.Strategy}, {where, "spec.cdi.enabled", enabled(spec.CDI.Enabled)},
			{where, "spec.operator.runtimeClass", spec.Operator.RuntimeClass},
		} {
			if e.Value != "" {
				found = found.With(e.Object, e.Field, e.Value)
			}
		}
		all = append(all, found)
		if state := p.Status.State; state != "" && state != "ready" {
			all = append(all, newFinding(Warning, "the GPU Operator is not ready").With(where, "status.state", state).
				WithRemedy("kubectl -n %s get pods; kubectl describe clusterpolicy %s", operatorNamespace(p), p.Metadata.Name))
		}
		if s := spec.SandboxWorkloads; s.Enabled != nil && *s.Enabled && strings.HasPrefix(s.DefaultWorkload, "vm-") {
			all = append(all, newFinding(Warning, "nodes without the label %s are prepared for virtual machines: the GPU Operator deploys no device "+
				"plugin there, and the ClusterPolicy's settings for it have no effect", labelWorkload).
				With(where, "spec.sandboxWorkloads.defaultWorkload", s.DefaultWorkload).
				WithRemedy("label the nodes whose GPUs are for containers: kubectl label node NODE --overwrite %s=container", labelWorkload))
		}
		all = append(all, f.missingConfigs(p)...)
	}
	return all
}

// missingConfigs are the ConfigMaps that a ClusterPolicy names and that do not exist.
func (f *Facts) missingConfigs(p *pools.ClusterPolicy) (all []Finding) {
	if f.unread(whatConfigs) {
		return nil
	}
	namespace := operatorNamespace(p)
	for _, named := range [][2]string{{"spec.devicePlugin.config.name", p.Spec.DevicePlugin.Config.Name},
		{"spec.migManager.config.name", p.Spec.MIGManager.Config.Name}} {
		field, name := named[0], named[1]
		exists := slices.ContainsFunc(f.Configs, func(m *corev1.ConfigMap) bool { return m.Namespace == namespace && m.Name == name })
		if name == "" || exists || name == nvidia.OperatorMIGConfig {
			continue
		}
		all = append(all,
			newFinding(Problem, "the GPU Operator's ClusterPolicy names a ConfigMap that does not exist: what needs it does not start").
				With(clusterPolicy(p), field, name).
				WithRemedy("kubectl -n %s create configmap %s --from-file=FILE, with a configuration that gpuslice doctor -f FILE accepts",
					namespace, name))
	}
	return all
}

// clusterPolicy names one as kubectl does.
func clusterPolicy(p *pools.ClusterPolicy) string {
	return object("clusterpolicy", "", cmp.Or(p.Metadata.Name, "cluster-policy"))
}

func enabled(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "true"
	}
	return "false"
}

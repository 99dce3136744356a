package policies

import (
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/rules"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// hideDevices hides the devices of an unchanged pod if a container would take devices beyond its request. In a
// namespace where GPUs are shared, those are other people's slices.
func hideDevices(in *Input, d Decision) Decision {
	if isDevicePlugin(&in.Pod.Spec) {
		d.Warnings = append(d.Warnings, fmt.Sprintf(
			"it looks like a device plugin, so its devices stay visible; exempt namespace %q from gpuslice's webhooks", in.Namespace.Name))
		return d
	}
	d.Warnings = append(append(d.Warnings, unwatched(in)...), devicesOfImages(in)...)
	visibility := devicesToHide(&in.Pod.Spec, in.Pools)
	if len(visibility.Hidden)+len(visibility.Unset) == 0 {
		return d
	}
	d.Outcome, d.IfEnforced, d.Visibility = DevicesHidden, DevicesHidden, &visibility
	d.Warnings = append(d.Warnings, choosing(in)...)
	return d
}

// devicePlugins is where device plugins register with the kubelet.
const devicePlugins = "/var/lib/kubelet/device-plugins"

// isDevicePlugin reports whether the pod can register devices with the kubelet. Without its devices such a pod makes the GPUs of
// its node disappear, and whoever may mount that directory has every device of the node anyway.
func isDevicePlugin(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil && path.Clean("/"+v.HostPath.Path) == devicePlugins
	})
}

// choosingContainers names the containers that would choose their devices by a variable.
func choosingContainers(spec *corev1.PodSpec, offered []pools.Pool) (names []string) {
	for c := range podspec.EveryContainer(spec) {
		if podedit.ChoosesDevices(c) || request.RequestsGPU(c, offered) && podspec.VariableIndex(c.Env, nvidia.EnvVisibleDevices) >= 0 {
			names = append(names, "container "+message.Quote(c.Name))
		}
	}
	return names
}

// choosing are warnings about containers that would choose their devices by a variable.
func choosing(in *Input) (warnings []string) {
	for c := range podspec.EveryContainer(&in.Pod.Spec) {
		instead := ""
		switch {
		case rules.IsPrivileged(c.SecurityContext) && podedit.ChoosesDevices(c): // unwatched warns: it has every GPU
		case request.RequestsGPU(c, in.Pools):
			if podedit.ChoosesDevices(c) || podspec.VariableIndex(c.Env, nvidia.EnvVisibleDevices) >= 0 {
				instead = "does not choose devices in this namespace; what the container requests under resources does"
			}
		case podedit.ChoosesDevices(c):
			instead = fmt.Sprintf("gives no GPU in this namespace; request %s: 1, with the label %s: %s for a share",
				api.ResourceGPU, api.LabelMemory, pools.AdvisedMemory(in.Pools, in.Policy.Strategies))
		}
		if instead != "" {
			warnings = append(warnings, fmt.Sprintf("container %s: %s %s", message.Quote(c.Name), nvidia.EnvVisibleDevices, instead))
		}
	}
	return warnings
}

// devicesOfImages is a warning about a pod that requests no GPU and has a runtime class of NVIDIA's: its containers get the devices that
// the variable of their images names, and those of CUDA's images name all.
func devicesOfImages(in *Input) []string {
	spec, operator := &in.Pod.Spec, in.Runtimes.Operator
	if spec.RuntimeClassName == nil || operator != nil && operator.IgnoresVariable || request.RequestsGPUs(spec, in.Pools) {
		return nil
	}
	known := false
	for _, class := range in.Runtimes.Classes {
		known = known || class.Name == *spec.RuntimeClassName
	}
	for c := range podspec.EveryContainer(spec) {
		if known && len(c.Resources.Claims) == 0 && podspec.VariableIndex(c.Env, nvidia.EnvVisibleDevices) < 0 && !rules.IsPrivileged(c.SecurityContext) {
			return []string{fmt.Sprintf("container %s gets every GPU of its node under runtimeClassName %s if its image sets %s: all, as CUDA's do; "+
				"request %s: 1, with the label %s: %s for a share, or set %s: void", message.Quote(c.Name), *spec.RuntimeClassName,
				nvidia.EnvVisibleDevices, api.ResourceGPU, api.LabelMemory, pools.AdvisedMemory(in.Pools, in.Policy.Strategies), nvidia.EnvVisibleDevices)}
		}
	}
	return nil
}

// devicesToHide looks for containers that choose their devices: in a pod that requests GPUs every one of them might, by its
// image; in another one those that say so. Devices of a claim come by another way, and stay.
func devicesToHide(spec *corev1.PodSpec, offered []pools.Pool) (v podedit.Visibility) {
	gpus := request.RequestsGPUs(spec, offered)
	for c := range podspec.EveryContainer(spec) {
		named := podspec.VariableIndex(c.Env, nvidia.EnvVisibleDevices) >= 0
		switch {
		case request.RequestsGPU(c, offered):
			if named {
				v.Unset = append(v.Unset, c.Name)
			}
		case podedit.ChoosesDevices(c), gpus && !named && len(c.Resources.Claims) == 0:
			v.Hidden = append(v.Hidden, c.Name)
		}
	}
	return v
}

// restoreDevices answers an UPDATE of a pod without slices, in.Pod, in a governed namespace: the pod with the variable by
// which devices are chosen as old has it, and nothing written about a slice. Variables are immutable on a live pod, and a manifest that is
// applied again names it as its author wrote it. It returns the pod itself where policy leaves the namespace as it is.
func restoreDevices(in Input, old *corev1.Pod) *corev1.Pod {
	if !changesPods(in) || in.Pod.DeletionTimestamp != nil {
		return in.Pod
	}
	out := in.Pod.DeepCopy()
	restoreRecords(old, out)
	ours := func(e corev1.EnvVar) bool { return e.Name == nvidia.EnvVisibleDevices }
	was := map[string]*corev1.Container{}
	for c := range podspec.EveryContainer(&old.Spec) {
		was[c.Name] = c
	}
	for c := range podspec.EveryContainer(&out.Spec) {
		if o := was[c.Name]; o != nil {
			c.Env = podspec.RestoreVariables(c.Env, o.Env, ours)
		}
	}
	return out
}

package doctor

import (
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// The toolkit's settings by which a pod can, or cannot, take devices beyond its request.
const (
	envvarSetting = "ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED"
	mountsSetting = "ACCEPT_NVIDIA_VISIBLE_DEVICES_AS_VOLUME_MOUNTS"
)

// checkVisibleDevices looks for the setting that lets any pod name the devices that it wants. gpuslice writes void where
// it governs; an image's own variable in other namespaces it never sees.
func checkVisibleDevices(f *Facts) []Finding {
	if f.unread(whatDaemonSets) || len(gpuNodes(f)) == 0 {
		return nil
	}
	toolkits := parts(f, nvidia.ContainerToolkit)
	if len(toolkits) == 0 {
		return []Finding{newFinding(Warning,
			"whether any pod may set NVIDIA_VISIBLE_DEVICES cannot be seen from the API: no DaemonSet installs the container toolkit").
			With("daemonsets", "spec.template.spec.containers", "no image is container-toolkit").
			WithRemedy("run this on a GPU node: grep accept-nvidia-visible-devices /etc/nvidia-container-runtime/config.toml\n" +
				"and expect accept-nvidia-visible-devices-envvar-when-unprivileged = false; the default is true")}
	}
	var all []Finding
	for _, d := range toolkits {
		value, _, set := variable(d, envvarSetting)
		field := "env[" + envvarSetting + "]"
		if set && strings.EqualFold(value, "false") {
			all = append(all, newFinding(OK, "the container toolkit ignores NVIDIA_VISIBLE_DEVICES of unprivileged pods").
				With(daemonSet(d), field, value))
			continue
		}
		if !set {
			value = "not set: the default is true"
		}
		all = append(all, newFinding(Problem, "any pod that sets NVIDIA_VISIBLE_DEVICES, or whose image does, gets GPUs that it did not request; gpuslice can prevent that only in the namespaces that it governs").
			With(daemonSet(d), field, value).
			WithRemedy("helm upgrade gpu-operator nvidia/gpu-operator -n %s --reuse-values \\\n  --set toolkit.env[0].name=%s --set-string toolkit.env[0].value=false \\\n"+
				"  --set toolkit.env[1].name=%s --set-string toolkit.env[1].value=true \\\n"+
				"  --set devicePlugin.env[0].name=DEVICE_LIST_STRATEGY --set-string devicePlugin.env[0].value=volume-mounts\n"+
				"lists are replaced: keep what they hold already", d.Namespace, envvarSetting, mountsSetting))
	}
	return all
}

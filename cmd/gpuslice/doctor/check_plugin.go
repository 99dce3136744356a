package doctor

import (
	"cmp"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// checkPlugin looks for NVIDIA's device plugin, and how it passes devices to containers.
func checkPlugin(f *Facts) []Finding {
	if f.unread(whatDaemonSets) {
		return nil
	}
	plugins := parts(f, nvidia.DevicePlugin)
	if len(plugins) == 0 {
		if len(gpuNodes(f)) == 0 {
			return nil // reported already: there are no GPUs
		}
		return []Finding{newFinding(Note, "nodes offer GPUs, and no DaemonSet looks like NVIDIA's device plugin: it is the provider's own, or a program on the node, and the API does not show its settings").
			With("daemonsets", "spec.template.spec.containers", "none runs nvidia-device-plugin")}
	}
	var all []Finding
	for _, d := range plugins {
		all = append(all, newFinding(OK, "NVIDIA's device plugin, %d of %d ready", d.Status.NumberReady, d.Status.DesiredNumberScheduled).
			With(daemonSet(d), "image", image(d, "device-plugin")))
		if d.Status.NumberReady < d.Status.DesiredNumberScheduled {
			all = append(all, newFinding(Warning, "the device plugin is not ready on %d nodes, whose GPUs nobody can request",
				d.Status.DesiredNumberScheduled-d.Status.NumberReady).
				With(daemonSet(d), "status.numberReady", decimal(d.Status.NumberReady)).
				WithRemedy("kubectl -n %s describe daemonset %s", d.Namespace, d.Name))
		}
		strategy, container, _ := variable(d, "DEVICE_LIST_STRATEGY")
		flag, _ := argument(d, "device-list-strategy")
		if strategy = cmp.Or(flag, strategy, "envvar"); strings.Contains(strategy, "envvar") {
			all = append(all,
				newFinding(Note, "the device plugin names devices in a variable, so the container toolkit has to trust the value that a pod sets").
					With(daemonSet(d), "env[DEVICE_LIST_STRATEGY]", strategy).
					WithRemedy("kubectl -n %s set env daemonset/%s -c %s DEVICE_LIST_STRATEGY=volume-mounts\ntogether with the toolkit's settings: see visible-devices",
						d.Namespace, d.Name, cmp.Or(container, d.Spec.Template.Spec.Containers[0].Name)))
		}
	}
	return all
}

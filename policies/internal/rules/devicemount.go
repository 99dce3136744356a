package rules

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// deviceMounts is where NVIDIA's container runtime reads the devices of a container from the names of its mounts.
const deviceMounts = "/run/nvidia-container-devices"

// deviceMount denies mounts that name devices: whatever is mounted there, the runtime gives the container the device.
var deviceMount = Rule{Reason: "a mount that takes devices", Everywhere: true, Find: func(s Subject) (found []Part) {
	for c := range podspec.EveryContainer(&s.Pod.Spec) {
		if m := NamesDevice(c.VolumeMounts); m != "" {
			found = append(found,
				Part{c.Name, "volumeMounts", fmt.Sprintf(
					"container %q mounts a volume at %s, by which the container runtime gives it devices that it did not request",
					c.Name, message.Quote(m))})
		}
	}
	return found
}, Instead: "remove it, and request " + api.ResourceGPU + ": 1"}

// NamesDevice returns a mount's path by which a container takes devices, or "".
func NamesDevice(mounts []corev1.VolumeMount) string {
	i := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return liesIn(nodePath(m.MountPath), deviceMounts) })
	if i < 0 {
		return ""
	}
	return mounts[i].MountPath
}

// Package nvidia knows the DaemonSets of NVIDIA's software for Kubernetes, and reads its configuration: the device plugin's,
// with the plugin's own parser, and the MIG manager's.
package nvidia

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// ResourcePrefix begins the names of NVIDIA's resources, of GPUs and others, and MIGPrefix the names of MIG instances.
const (
	ResourcePrefix = "nvidia.com/"
	MIGPrefix      = ResourcePrefix + "mig-"
)

// The variables by which a pod requests the driver's own memory limit from the container toolkit.
const (
	VarMemoryLimit   = "NVIDIA_GPU_MEMORY_LIMIT"
	VarMemoryRequest = "NVIDIA_GPU_MEMORY_REQUEST"
)

// Parts of NVIDIA's that run as DaemonSets.
const (
	DevicePlugin     = "device plugin"
	MPSDaemon        = "MPS control daemon"
	FeatureDiscovery = "GPU feature discovery"
	ContainerToolkit = "container toolkit"
	MIGManager       = "MIG manager"
	Validator        = "GPU Operator's validator"
	OwnMPSDaemon     = "MPS control daemon of your own"
	OtherSoftware    = ""
)

// PartOf is the part of NVIDIA's that a DaemonSet runs. The device plugin's chart and image serve several: the names or
// commands of containers distinguish them.
func PartOf(d *appsv1.DaemonSet) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		command := strings.Join(append([]string{c.Name}, c.Command...), " ")
		switch {
		case strings.Contains(command+" "+strings.Join(c.Args, " "), "nvidia-cuda-mps-control"):
			return OwnMPSDaemon
		case strings.Contains(command+c.Image, "mig-manager"):
			return MIGManager
		case strings.Contains(c.Name, "nvidia-operator-validator"):
			return Validator
		case strings.Contains(command, "mps-control-daemon"):
			return MPSDaemon
		case strings.Contains(command, "gpu-feature-discovery"):
			return FeatureDiscovery
		case strings.Contains(command, "nvidia-device-plugin"), strings.Contains(command, "nvidia-gpu-device-plugin"):
			return DevicePlugin
		case strings.Contains(c.Image, "container-toolkit"):
			return ContainerToolkit
		case strings.Contains(c.Image, "k8s-device-plugin"):
			return DevicePlugin
		}
	}
	return OtherSoftware
}

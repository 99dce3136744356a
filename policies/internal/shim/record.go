package shim

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
)

// RecorderName is the name of the recorder with the number.
func RecorderName(number int) string { return limits.RecordContainer + strconv.Itoa(number) }

// RecorderNumber is the number of the recorder with the name, or -1: it is of none.
func RecorderNumber(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, limits.RecordContainer))
	if err != nil || RecorderName(n) != name {
		return -1
	}
	return n
}

// Recorder makes of r, a container of the guard's size, the init container that records the image of c. It runs as c's user, and
// with no right that c has beyond that: all it does is to write a file. No device is for it.
func Recorder(r corev1.Container, c *corev1.Container, number int) corev1.Container {
	r.Name, r.Image, r.ImagePullPolicy, r.Args = RecorderName(number), c.Image, c.ImagePullPolicy, nil
	r.Command = []string{limits.ShimProgram, limits.RecordOption, limits.ShimFolder + "/" + recordFile(number)}
	r.Env = []corev1.EnvVar{{Name: nvidia.EnvVisibleDevices, Value: nvidia.NoDevices}}
	r.VolumeMounts = []corev1.VolumeMount{{Name: limits.ShimVolume, MountPath: limits.ShimFolder}}
	s := new(corev1.SecurityContext)
	if c.SecurityContext != nil {
		s = c.SecurityContext.DeepCopy()
	}
	s.Privileged, s.ProcMount = nil, nil
	s.AllowPrivilegeEscalation, s.ReadOnlyRootFilesystem = new(false), new(true)
	s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	r.SecurityContext = s
	return r
}

func recordFile(number int) string { return limits.RecordFile + strconv.Itoa(number) }

// fromFile reports whether an entry reads the shim's volume.
func fromFile(e corev1.EnvVar) bool {
	return e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil && e.ValueFrom.FileKeyRef.VolumeName == limits.ShimVolume
}

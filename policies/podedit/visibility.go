package podedit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// Visibility is which containers of a pod without slices would take devices that they did not request.
type Visibility struct {
	Hidden []string `json:"hidden,omitempty"` // they request none: NVIDIA_VISIBLE_DEVICES becomes "void"
	Unset  []string `json:"unset,omitempty"`  // they request some: the variable goes, and the device plugin's holds
}

// Apply returns a copy of the pod in which the containers choose no devices.
func (v *Visibility) Apply(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	for c := range podspec.EveryContainer(&out.Spec) {
		switch {
		case slices.Contains(v.Hidden, c.Name):
			c.Env = podspec.SetVariable(c.Env, podspec.Variable{Name: nvidia.EnvVisibleDevices, Value: nvidia.NoDevices})
		case slices.Contains(v.Unset, c.Name):
			c.Env = podspec.WithoutVariable(c.Env, nvidia.EnvVisibleDevices)
		}
	}
	return out
}

// ChoosesDevices reports whether the container's variables alone make the runtime give it devices.
func ChoosesDevices(c *corev1.Container) bool {
	named := 0
	for _, e := range c.Env {
		if e.Name == nvidia.EnvVisibleDevices {
			takesNothing := e.ValueFrom == nil && slices.Contains([]string{"", "none", nvidia.NoDevices}, e.Value)
			if named++; named > 1 || !takesNothing {
				return true
			}
		}
	}
	return named == 0 && podspec.VariableIndex(c.Env, nvidia.EnvCUDAVersion) >= 0
}

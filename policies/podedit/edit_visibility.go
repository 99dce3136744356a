package podedit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// visibilityEdit is device visibility: the variable that hides the node's GPUs from containers without a slice.
type visibilityEdit struct{}

// Apply hides the devices from the containers without a GPU, and unsets the variable in those with one.
func (visibilityEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	for c := range podspec.Containers(&pod.Spec) {
		c.Env = podspec.WithoutVariable(c.Env, nvidia.EnvIMEXChannels)
		switch {
		case next.Container(c.Name) != nil:
			c.Env = podspec.WithoutVariable(c.Env, nvidia.EnvVisibleDevices)
		case slices.Contains(next.Hidden, c.Name):
			c.Env = podspec.SetVariable(c.Env, podspec.Variable{Name: nvidia.EnvVisibleDevices, Value: nvidia.NoDevices})
		}
	}
}

// Revert does not bring back the author's values under these names: they are not recorded, and would not be obeyed
// anyway.
func (visibilityEdit) Revert(pod *corev1.Pod, old, next *promise.Promise) {
	for _, name := range old.Hidden {
		c, _ := podspec.ContainerNamed(&pod.Spec, name)
		if c == nil || slices.Contains(next.Hidden, name) {
			continue
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == nvidia.EnvVisibleDevices && e.Value == nvidia.NoDevices })
	}
}

func (visibilityEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		if given.Container(c.Name) != nil {
			continue // edit_env.go restores the variables of containers with a slice
		}
		hidden := slices.Contains(given.Hidden, c.Name)
		c.Env = podspec.RestoreVariables(c.Env, was.Env, func(e corev1.EnvVar) bool {
			return nvidia.IsOwnVariable(e.Name) || e.Name == nvidia.EnvIMEXChannels || hidden && e.Name == nvidia.EnvVisibleDevices
		})
	}
}

package promise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/envvar"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// visibilityEdit is device visibility: the variable that hides the node's GPUs from containers without a slice.
type visibilityEdit struct{}

// Apply hides the devices from the containers without a GPU, and unsets the variable in those with one.
func (visibilityEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	for c := range podspec.Containers(&pod.Spec) {
		c.Env = envvar.Without(c.Env, envvar.IMEXChannels)
		switch {
		case next.Container(c.Name) != nil:
			c.Env = envvar.Without(c.Env, envvar.VisibleDevices)
		case slices.Contains(next.Hidden, c.Name):
			c.Env = envvar.Set(c.Env, envvar.Literal{Name: envvar.VisibleDevices, Value: envvar.NoDevices})
		}
	}
}

// Revert does not bring back what the author had under these names: it is not recorded, and would not be obeyed anyway.
func (visibilityEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	for _, name := range old.Hidden {
		c, _ := podspec.ContainerNamed(&pod.Spec, name)
		if c == nil || slices.Contains(next.Hidden, name) {
			continue
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == envvar.VisibleDevices && e.Value == envvar.NoDevices })
	}
}

func (visibilityEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		if given.Container(c.Name) != nil {
			continue // edit_env.go restores the variables of containers with a slice
		}
		hidden := slices.Contains(given.Hidden, c.Name)
		c.Env = envvar.Restore(c.Env, was.Env, func(e corev1.EnvVar) bool {
			return envvar.IsOwn(e.Name) || e.Name == envvar.IMEXChannels || hidden && e.Name == envvar.VisibleDevices
		})
	}
}

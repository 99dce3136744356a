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
		c.Env = withoutVariable(c.Env, envvar.IMEXChannels)
		switch {
		case next.Container(c.Name) != nil:
			c.Env = withoutVariable(c.Env, envvar.VisibleDevices)
		case slices.Contains(next.Hidden, c.Name):
			c.Env = SetVariable(c.Env, envvar.Literal{Name: envvar.VisibleDevices, Value: envvar.NoDevices})
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
	for was, c := range containerPairs(old, updated) {
		if given.Container(c.Name) != nil {
			continue // edit_env.go restores the variables of containers with a slice
		}
		hidden := slices.Contains(given.Hidden, c.Name)
		c.Env = RestoreEnv(c.Env, was.Env, func(e corev1.EnvVar) bool {
			return envvar.IsOwn(e.Name) || e.Name == envvar.IMEXChannels || hidden && e.Name == envvar.VisibleDevices
		})
	}
}

// Visibility is which containers of a pod without slices would take devices that they did not ask for.
type Visibility struct {
	Hidden []string `json:"hidden,omitempty"` // they ask for none: NVIDIA_VISIBLE_DEVICES becomes "void"
	Unset  []string `json:"unset,omitempty"`  // they ask for some: the variable goes, and the device plugin's holds
}

// Apply returns a copy of the pod in which the containers choose no devices.
func (v *Visibility) Apply(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	for c := range podspec.EveryContainer(&out.Spec) {
		switch {
		case slices.Contains(v.Hidden, c.Name):
			c.Env = SetVariable(c.Env, envvar.Literal{Name: envvar.VisibleDevices, Value: envvar.NoDevices})
		case slices.Contains(v.Unset, c.Name):
			c.Env = withoutVariable(c.Env, envvar.VisibleDevices)
		}
	}
	return out
}

// ChoosesDevices reports whether the container's variables alone make the runtime give it devices.
func ChoosesDevices(c *corev1.Container) bool {
	named := 0
	for _, e := range c.Env {
		if e.Name == envvar.VisibleDevices {
			if named++; named > 1 || !takesNothing(e) {
				return true
			}
		}
	}
	return named == 0 && IndexOfVariable(c.Env, envvar.CUDAVersion) >= 0
}

// takesNothing reports whether the runtime gives no device for a value.
func takesNothing(e corev1.EnvVar) bool {
	return e.ValueFrom == nil && slices.Contains([]string{"", "none", envvar.NoDevices}, e.Value)
}

func IndexOfVariable(env []corev1.EnvVar, name string) int {
	return slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
}

package promise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// visibilityEdit is device visibility: the variable that hides the node's GPUs from containers without a slice.
type visibilityEdit struct{}

// Apply hides the devices from the containers without a GPU, and unsets the variable in those with one.
func (visibilityEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	for c := range api.Containers(&pod.Spec) {
		c.Env = withoutVariable(c.Env, api.VarIMEXChannels)
		switch {
		case next.Container(c.Name) != nil:
			c.Env = withoutVariable(c.Env, api.VarVisibleDevices)
		case slices.Contains(next.Hidden, c.Name):
			c.Env = SetVariable(c.Env, api.Variable{Name: api.VarVisibleDevices, Value: api.NoDevices})
		}
	}
}

// Revert does not bring back what the author had under these names: it is not recorded, and would not be obeyed anyway.
func (visibilityEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	for _, name := range old.Hidden {
		c, _ := api.ContainerNamed(&pod.Spec, name)
		if c == nil || slices.Contains(next.Hidden, name) {
			continue
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == api.VarVisibleDevices && e.Value == api.NoDevices })
	}
}

func (visibilityEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	for was, c := range containerPairs(old, updated) {
		if given.Container(c.Name) != nil {
			continue // edit_env.go restores the variables of containers with a slice
		}
		hidden := slices.Contains(given.Hidden, c.Name)
		c.Env = RestoreEnv(c.Env, was.Env, func(e corev1.EnvVar) bool {
			return api.IsOwnVariable(e.Name) || e.Name == api.VarIMEXChannels || hidden && e.Name == api.VarVisibleDevices
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
	for c := range api.EveryContainer(&out.Spec) {
		switch {
		case slices.Contains(v.Hidden, c.Name):
			c.Env = SetVariable(c.Env, api.Variable{Name: api.VarVisibleDevices, Value: api.NoDevices})
		case slices.Contains(v.Unset, c.Name):
			c.Env = withoutVariable(c.Env, api.VarVisibleDevices)
		}
	}
	return out
}

// ChoosesDevices reports whether the container's variables alone make the runtime give it devices.
func ChoosesDevices(c *corev1.Container) bool {
	named := 0
	for _, e := range c.Env {
		if e.Name == api.VarVisibleDevices {
			if named++; named > 1 || !takesNothing(e) {
				return true
			}
		}
	}
	return named == 0 && IndexOfVariable(c.Env, api.VarCUDAVersion) >= 0
}

// takesNothing reports whether the runtime gives no device for a value.
func takesNothing(e corev1.EnvVar) bool {
	return e.ValueFrom == nil && slices.Contains([]string{"", "none", api.NoDevices}, e.Value)
}

func IndexOfVariable(env []corev1.EnvVar, name string) int {
	return slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
}

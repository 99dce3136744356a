package policies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Variables by which NVIDIA's container runtime gives a container its devices. By default the runtime obeys them in any
// pod, and CUDA images say "all" by themselves. So they are nobody's to choose: a container with a GPU has none (the
// device plugin's value, which the kubelet brings, must not meet another), every other container has "void".
const (
	imexChannels = "NVIDIA_IMEX_CHANNELS" // memory of other nodes
	// cudaVersion alone means "all" to the runtime: it takes the image for one from before there was a variable.
	cudaVersion = "CUDA_VERSION"
	noDevices   = "void"
)

func namesDevices(name string) bool { return name == VarVisibleDevices || name == imexChannels }

// visibilityEdit is device visibility: the variable that hides the node's GPUs from containers without a slice.
type visibilityEdit struct{}

// Apply hides the devices from the containers without a GPU, and unsets the variable in those with one.
func (visibilityEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	for c := range podContainers(&pod.Spec) {
		c.Env = withoutVariable(c.Env, imexChannels)
		switch {
		case next.container(c.Name) != nil:
			c.Env = withoutVariable(c.Env, VarVisibleDevices)
		case slices.Contains(next.Hidden, c.Name):
			c.Env = setVariable(c.Env, Variable{VarVisibleDevices, noDevices})
		}
	}
}

// Revert does not bring back what the author had under these names: it is not recorded, and would not be obeyed anyway.
func (visibilityEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	for _, name := range old.Hidden {
		c, _ := containerNamed(&pod.Spec, name)
		if c == nil || slices.Contains(next.Hidden, name) {
			continue
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == VarVisibleDevices && e.Value == noDevices })
	}
}

func (visibilityEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	for was, c := range containerPairs(old, updated) {
		if given.container(c.Name) != nil {
			continue // edit_env.go restores the variables of containers with a slice
		}
		hidden := slices.Contains(given.Hidden, c.Name)
		c.Env = restoreEnv(c.Env, was.Env, func(e corev1.EnvVar) bool {
			return isOwnVariable(e.Name) || e.Name == imexChannels || hidden && e.Name == VarVisibleDevices
		})
	}
}

// Visibility is which containers of a pod without slices would take devices that they did not ask for.
type Visibility struct {
	Hidden []string `json:"hidden,omitempty"` // they ask for none: NVIDIA_VISIBLE_DEVICES becomes "void"
	Unset  []string `json:"unset,omitempty"`  // they ask for some: the variable goes, and the device plugin's holds
}

// apply returns a copy of the pod in which the containers choose no devices.
func (v *Visibility) apply(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	for c := range everyContainer(&out.Spec) {
		switch {
		case slices.Contains(v.Hidden, c.Name):
			c.Env = setVariable(c.Env, Variable{VarVisibleDevices, noDevices})
		case slices.Contains(v.Unset, c.Name):
			c.Env = withoutVariable(c.Env, VarVisibleDevices)
		}
	}
	return out
}

// choosesDevices reports whether the container's variables alone make the runtime give it devices.
func choosesDevices(c *corev1.Container) bool {
	named := 0
	for _, e := range c.Env {
		if e.Name == VarVisibleDevices {
			if named++; named > 1 || !takesNothing(e) {
				return true
			}
		}
	}
	return named == 0 && indexOfVariable(c.Env, cudaVersion) >= 0
}

// takesNothing reports whether the runtime gives no device for a value.
func takesNothing(e corev1.EnvVar) bool {
	return e.ValueFrom == nil && slices.Contains([]string{"", "none", noDevices}, e.Value)
}

func indexOfVariable(env []corev1.EnvVar, name string) int {
	return slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
}

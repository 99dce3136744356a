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

// void records which containers get no device.
func (w *promiseWriter) void() {
	for c := range podContainers(&w.in.Pod.Spec) {
		if w.promise.container(c.Name) == nil && !slices.Contains(c.Env, corev1.EnvVar{Name: VarVisibleDevices, Value: noDevices}) {
			w.promise.Void = append(w.promise.Void, c.Name)
		}
	}
}

// applyVoid writes the variable into the containers without a GPU, and removes it from those with one.
func applyVoid(spec *corev1.PodSpec, promise *Promise) {
	for c := range podContainers(spec) {
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == imexChannels })
		switch {
		case promise.container(c.Name) != nil:
			c.Env = withoutVariable(c.Env, VarVisibleDevices)
		case slices.Contains(promise.Void, c.Name):
			c.Env = setVariable(c.Env, Variable{VarVisibleDevices, noDevices})
		}
	}
}

func withoutVariable(env []corev1.EnvVar, name string) []corev1.EnvVar {
	return slices.DeleteFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
}

// takeBackVoid removes what an older Promise wrote and the next does not. What the author had there before is not known,
// and would not be obeyed anyway.
func takeBackVoid(spec *corev1.PodSpec, old, next *Promise) {
	for _, name := range old.Void {
		c, _ := containerNamed(spec, name)
		if c == nil || next != nil && slices.Contains(next.Void, name) {
			continue
		}
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == VarVisibleDevices && e.Value == noDevices })
	}
}

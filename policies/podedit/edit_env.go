package podedit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// envEdit is the variables of a container with a slice. No other container has any under our names.
type envEdit struct{}

// Apply makes each promised variable the one entry of its name, and removes all others under our names.
func (envEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	for c := range podspec.Containers(&pod.Spec) {
		p := next.Container(c.Name)
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return nvidia.IsOwnVariable(e.Name) && !sets(p, e.Name) })
		if p == nil {
			continue
		}
		for _, v := range p.Env {
			c.Env = podspec.SetVariable(c.Env, v)
		}
	}
}

// Revert leaves variables under our names that no Promise set: their author is warned of them.
func (envEdit) Revert(pod *corev1.Pod, old, next *promise.Promise) {
	for i := range old.Containers {
		was := &old.Containers[i]
		c, _ := podspec.ContainerNamed(&pod.Spec, was.Name)
		if c == nil {
			continue
		}
		now := next.Container(was.Name)
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.ValueFrom == nil && slices.Contains(was.Env, podspec.Variable{Name: e.Name, Value: e.Value}) && !sets(now, e.Name)
		})
	}
}

func (envEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		p := given.Container(c.Name)
		if p == nil {
			continue // edit_visibility.go restores the variables of containers without a slice
		}
		c.Env = podspec.RestoreVariables(c.Env, was.Env, func(e corev1.EnvVar) bool {
			return nvidia.IsOwnVariable(e.Name) || sets(p, e.Name) || nvidia.NamesDevices(e.Name)
		})
	}
}

// sets reports whether the Promise gives the container a variable of that name; nil gives none.
func sets(c *promise.Container, name string) bool {
	return c != nil && slices.ContainsFunc(c.Env, func(v podspec.Variable) bool { return v.Name == name })
}

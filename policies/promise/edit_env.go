package promise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/envvar"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// envEdit is the variables of a container with a slice. No other container has any under our names.
type envEdit struct{}

// Apply makes each promised variable the one entry of its name, and removes all others under our names.
func (envEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	for c := range podspec.Containers(&pod.Spec) {
		p := next.Container(c.Name)
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return envvar.IsOwn(e.Name) && !p.sets(e.Name) })
		if p == nil {
			continue
		}
		for _, v := range p.Env {
			c.Env = envvar.Set(c.Env, v)
		}
	}
}

// Revert leaves variables under our names that no Promise set: their author is warned of them.
func (envEdit) Revert(pod *corev1.Pod, old, next *Promise) {
	for i := range old.Containers {
		was := &old.Containers[i]
		c, _ := podspec.ContainerNamed(&pod.Spec, was.Name)
		if c == nil {
			continue
		}
		now := next.Container(was.Name)
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.ValueFrom == nil && slices.Contains(was.Env, envvar.Literal{Name: e.Name, Value: e.Value}) && !now.sets(e.Name)
		})
	}
}

func (envEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		p := given.Container(c.Name)
		if p == nil {
			continue // edit_visibility.go restores the variables of containers without a slice
		}
		c.Env = envvar.Restore(c.Env, was.Env, func(e corev1.EnvVar) bool {
			return envvar.IsOwn(e.Name) || p.sets(e.Name) || envvar.NamesDevices(e.Name)
		})
	}
}

func (c *Container) sets(name string) bool {
	return c != nil && slices.ContainsFunc(c.Env, func(v envvar.Literal) bool { return v.Name == name })
}

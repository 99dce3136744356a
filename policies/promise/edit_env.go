package promise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

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
			c.Env = SetVariable(c.Env, v)
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
	for was, c := range containerPairs(old, updated) {
		p := given.Container(c.Name)
		if p == nil {
			continue // edit_visibility.go restores the variables of containers without a slice
		}
		c.Env = RestoreEnv(c.Env, was.Env, func(e corev1.EnvVar) bool {
			return envvar.IsOwn(e.Name) || p.sets(e.Name) || envvar.NamesDevices(e.Name)
		})
	}
}

// SetVariable makes v the one entry of its name: in place where there is one, else at the end.
func SetVariable(env []corev1.EnvVar, v envvar.Literal) []corev1.EnvVar {
	named := func(e corev1.EnvVar) bool { return e.Name == v.Name }
	i := slices.IndexFunc(env, named)
	if i < 0 {
		return append(env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	env[i] = corev1.EnvVar{Name: v.Name, Value: v.Value}
	return append(env[:i+1], slices.DeleteFunc(env[i+1:], named)...)
}

func withoutVariable(env []corev1.EnvVar, name string) []corev1.EnvVar {
	return slices.DeleteFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
}

// RestoreEnv returns the old list where the new one differs from it by variables of ours and by order alone: variables
// are immutable on a live pod, order included, and applying a manifest reorders them. Otherwise the author changed
// something, and the server's own answer should be about that.
func RestoreEnv(env, was []corev1.EnvVar, ours func(corev1.EnvVar) bool) []corev1.EnvVar {
	if theirsWithin(env, was, ours) && theirsWithin(was, env, ours) {
		return slices.Clone(was)
	}
	return env
}

// theirsWithin reports whether every variable of list that is not ours stands in other too.
func theirsWithin(list, other []corev1.EnvVar, ours func(corev1.EnvVar) bool) bool {
	for _, e := range list {
		if !ours(e) && !slices.ContainsFunc(other, func(o corev1.EnvVar) bool { return o.Name == e.Name && equality.Semantic.DeepEqual(o, e) }) {
			return false
		}
	}
	return true
}

func (c *Container) sets(name string) bool {
	return c != nil && slices.ContainsFunc(c.Env, func(v envvar.Literal) bool { return v.Name == name })
}

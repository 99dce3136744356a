package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Variable is an environment variable with a literal value.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SetVariable makes v the one entry of its name: in place where there is one, else at the end.
func SetVariable(env []corev1.EnvVar, v Variable) []corev1.EnvVar {
	named := func(e corev1.EnvVar) bool { return e.Name == v.Name }
	i := slices.IndexFunc(env, named)
	if i < 0 {
		return append(env, corev1.EnvVar{Name: v.Name, Value: v.Value})
	}
	env[i] = corev1.EnvVar{Name: v.Name, Value: v.Value}
	return append(env[:i+1], slices.DeleteFunc(env[i+1:], named)...)
}

func WithoutVariable(env []corev1.EnvVar, name string) []corev1.EnvVar {
	return slices.DeleteFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
}

// RestoreVariables returns the old list where the new one differs from it by variables of ours and by order alone: variables
// are immutable on a live pod, order included, and applying a manifest reorders them. Otherwise the author changed
// something, and the server's own answer should be about that.
func RestoreVariables(env, was []corev1.EnvVar, ours func(corev1.EnvVar) bool) []corev1.EnvVar {
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

func VariableIndex(env []corev1.EnvVar, name string) int {
	return slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
}

package podedit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// argsEdit is the arguments at the end of a container's own.
type argsEdit struct{}

func (argsEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	for i := range next.Containers {
		p := &next.Containers[i]
		if c, _ := podspec.ContainerNamed(&pod.Spec, p.Name); c != nil && len(p.Args) > 0 {
			// At the end: of a flag that is there twice, servers take the last.
			c.Args = append(withoutArgs(c.Args, p.Args), p.Args...)
		}
	}
}

func (argsEdit) Revert(pod *corev1.Pod, old, next *promise.Promise) {
	for i := range old.Containers {
		was := &old.Containers[i]
		if now := next.Container(was.Name); now != nil && slices.Equal(now.Args, was.Args) {
			continue
		}
		if c, _ := podspec.ContainerNamed(&pod.Spec, was.Name); c != nil {
			c.Args = withoutArgs(c.Args, was.Args)
		}
	}
}

// Restore adds our arguments to those of the author where these are the old ones: arguments are immutable on a live pod.
func (argsEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		if p := given.Container(c.Name); p != nil && slices.Equal(c.Args, withoutArgs(was.Args, p.Args)) {
			c.Args = slices.Clone(was.Args)
		}
	}
}

// withoutArgs returns args without own at their end.
func withoutArgs(args, own []string) []string {
	theirs := len(args) - len(own)
	if len(own) == 0 || theirs < 0 || !slices.Equal(args[theirs:], own) {
		return args
	}
	if theirs == 0 {
		return nil
	}
	return args[:theirs:theirs] // whoever appends to it must not write over args
}

package podedit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// shimEdit is how a container's Python comes to load the shim: its folder at the beginning of the pod's own PYTHONPATH, or
// the program at the beginning of the pod's own command, or the variable from the file of its recorder.
type shimEdit struct{}

func (shimEdit) Apply(pod *corev1.Pod, _, next *promise.Promise) {
	for i := range next.Containers {
		p := &next.Containers[i]
		if p.Shim == "" {
			continue
		}
		if c, _ := podspec.ContainerNamed(&pod.Spec, p.Name); c != nil {
			shim.Write(c, p.Shim, i)
		}
	}
}

// Revert removes folder and program wherever next does not write them, old's too.
func (shimEdit) Revert(pod *corev1.Pod, _, next *promise.Promise) {
	for c := range podspec.Containers(&pod.Spec) {
		keep := ""
		if p := next.Container(c.Name); p != nil {
			keep = p.Shim
		}
		shim.Remove(c, keep)
	}
}

// Restore puts them before the author's own: command and variables are immutable on a live pod.
func (shimEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		if p := given.Container(c.Name); p != nil && p.Shim != "" {
			shim.Restore(c, was)
		}
	}
}

package promise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// volumesEdit is the pod's volumes under our names.
type volumesEdit struct{}

func (volumesEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	dropVolumes(&pod.Spec, next)
	for i := range next.Volumes {
		v := next.Volumes[i].DeepCopy()
		if at := slices.IndexFunc(pod.Spec.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name }); at >= 0 {
			pod.Spec.Volumes[at] = *v
		} else {
			pod.Spec.Volumes = append(pod.Spec.Volumes, *v)
		}
	}
}

// Revert removes every volume under our names that next does not write, old's too.
func (volumesEdit) Revert(pod *corev1.Pod, _, next *Promise) { dropVolumes(&pod.Spec, next) }

func dropVolumes(spec *corev1.PodSpec, next *Promise) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return podspec.IsOurs(v.Name) && !next.HasVolume(v.Name) })
}

func (volumesEdit) Restore(old, updated *corev1.Pod, _ *Promise) {
	updated.Spec.Volumes = podspec.RestoreList(updated.Spec.Volumes, old.Spec.Volumes,
		func(v corev1.Volume) bool { return podspec.IsOurs(v.Name) },
		func(a, b corev1.Volume) bool { return a.Name == b.Name })
}

func (p *Promise) HasVolume(name string) bool {
	return p != nil && slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

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
	for _, v := range next.Volumes {
		pod.Spec.Volumes = setVolume(pod.Spec.Volumes, v)
	}
}

// Revert removes every volume under our names that next does not write, old's too.
func (volumesEdit) Revert(pod *corev1.Pod, _, next *Promise) { dropVolumes(&pod.Spec, next) }

func dropVolumes(spec *corev1.PodSpec, next *Promise) {
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return podspec.IsOurVolume(v.Name) && !next.HasVolume(v.Name) })
}

func (volumesEdit) Restore(old, updated *corev1.Pod, _ *Promise) {
	updated.Spec.Volumes = restoreList(updated.Spec.Volumes, old.Spec.Volumes,
		func(v corev1.Volume) bool { return podspec.IsOurVolume(v.Name) },
		func(a, b corev1.Volume) bool { return a.Name == b.Name })
}

func setVolume(volumes []corev1.Volume, v corev1.Volume) []corev1.Volume {
	for i := range volumes {
		if volumes[i].Name == v.Name {
			volumes[i] = *v.DeepCopy()
			return volumes
		}
	}
	return append(volumes, *v.DeepCopy())
}

func (p *Promise) HasVolume(name string) bool {
	return p != nil && slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

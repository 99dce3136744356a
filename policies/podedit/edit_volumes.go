package podedit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// volumesEdit is the pod's volumes under our names, and their mounts.
type volumesEdit struct{}

func (e volumesEdit) Apply(pod *corev1.Pod, old, next *promise.Promise) {
	e.Revert(pod, old, next)
	for i := range next.Containers {
		p := &next.Containers[i]
		c, _ := podspec.ContainerNamed(&pod.Spec, p.Name)
		if c == nil {
			continue
		}
		for _, m := range p.Mounts {
			c.VolumeMounts = setMount(c.VolumeMounts, m)
		}
	}
	for i := range next.Volumes {
		v := next.Volumes[i].DeepCopy()
		if at := slices.IndexFunc(pod.Spec.Volumes, func(have corev1.Volume) bool { return have.Name == v.Name }); at >= 0 {
			pod.Spec.Volumes[at] = *v
		} else {
			pod.Spec.Volumes = append(pod.Spec.Volumes, *v)
		}
	}
}

// Revert removes every volume under our names that next does not write, old's too, and every mount of one.
func (volumesEdit) Revert(pod *corev1.Pod, _, next *promise.Promise) {
	for c := range podspec.Containers(&pod.Spec) {
		promised := next.Container(c.Name)
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return podspec.IsOurs(m.Name) && !mounts(promised, m)
		})
	}
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return podspec.IsOurs(v.Name) && !next.HasVolume(v.Name)
	})
}

func (volumesEdit) Restore(old, updated *corev1.Pod, given *promise.Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		p := given.Container(c.Name)
		ours := func(m corev1.VolumeMount) bool {
			at := func(have corev1.VolumeMount) bool { return have.MountPath == m.MountPath }
			return podspec.IsOurs(m.Name) || p != nil && slices.ContainsFunc(p.Mounts, at)
		}
		c.VolumeMounts = podspec.RestoreList(c.VolumeMounts, was.VolumeMounts, ours,
			func(a, b corev1.VolumeMount) bool { return a.MountPath == b.MountPath })
	}
	updated.Spec.Volumes = podspec.RestoreList(updated.Spec.Volumes, old.Spec.Volumes,
		func(v corev1.Volume) bool { return podspec.IsOurs(v.Name) },
		func(a, b corev1.Volume) bool { return a.Name == b.Name })
}

// setMount makes m the one mount at its path.
func setMount(mounts []corev1.VolumeMount, m corev1.VolumeMount) []corev1.VolumeMount {
	for i := range mounts {
		if mounts[i].MountPath == m.MountPath { // two at one path are invalid
			mounts[i] = *m.DeepCopy()
			return mounts
		}
	}
	return append(mounts, *m.DeepCopy())
}

func mounts(c *promise.Container, m corev1.VolumeMount) bool {
	return c != nil &&
		slices.ContainsFunc(c.Mounts, func(have corev1.VolumeMount) bool { return have.Name == m.Name && have.MountPath == m.MountPath })
}

package promise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// mountsEdit is the mounts of our volumes.
type mountsEdit struct{}

func (mountsEdit) Apply(pod *corev1.Pod, _, next *Promise) {
	dropMounts(&pod.Spec, next)
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
}

// Revert removes every mount of a volume under our names that next does not write, old's too.
func (mountsEdit) Revert(pod *corev1.Pod, _, next *Promise) { dropMounts(&pod.Spec, next) }

func dropMounts(spec *corev1.PodSpec, next *Promise) {
	for c := range podspec.Containers(spec) {
		promised := next.Container(c.Name)
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return podspec.IsOurs(m.Name) && !promised.mounts(m)
		})
	}
}

func (mountsEdit) Restore(old, updated *corev1.Pod, given *Promise) {
	for was, c := range podspec.ContainerPairs(old, updated) {
		p := given.Container(c.Name)
		ours := func(m corev1.VolumeMount) bool { return podspec.IsOurs(m.Name) || p.mountsAt(m.MountPath) }
		c.VolumeMounts = podspec.RestoreList(c.VolumeMounts, was.VolumeMounts, ours,
			func(a, b corev1.VolumeMount) bool { return a.MountPath == b.MountPath })
	}
}

// setMount makes m the one mount at its path.
func setMount(mounts []corev1.VolumeMount, m corev1.VolumeMount) []corev1.VolumeMount {
	for i := range mounts {
		if mounts[i].MountPath == m.MountPath {
			mounts[i] = *m.DeepCopy()
			return mounts
		}
	}
	return append(mounts, *m.DeepCopy())
}

func (c *Container) mounts(m corev1.VolumeMount) bool {
	return c != nil && slices.ContainsFunc(c.Mounts, func(have corev1.VolumeMount) bool { return have.Name == m.Name && have.MountPath == m.MountPath })
}

func (c *Container) mountsAt(path string) bool {
	return c != nil && slices.ContainsFunc(c.Mounts, func(have corev1.VolumeMount) bool { return have.MountPath == path })
}

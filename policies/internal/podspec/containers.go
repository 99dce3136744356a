package podspec

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Containers yields the pod's containers in the order in which they start: init containers, then the others. init
// reports the kind; sidecars are init containers here. Containers of ours are left out.
func Containers(spec *corev1.PodSpec) iter.Seq2[*corev1.Container, bool] {
	return func(yield func(*corev1.Container, bool) bool) {
		for i := range spec.InitContainers {
			if c := &spec.InitContainers[i]; !IsOurs(c.Name) && !yield(c, true) {
				return
			}
		}
		for i := range spec.Containers {
			if c := &spec.Containers[i]; !IsOurs(c.Name) && !yield(c, false) {
				return
			}
		}
	}
}

// EveryContainer yields the pod's containers, those under our names too: a name proves nothing.
func EveryContainer(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

func HasContainer(spec *corev1.PodSpec, name string) bool {
	c, _ := ContainerNamed(spec, name)
	return c != nil
}

// ContainerNamed returns the pod's container of that name, ours left out, and whether it is an init container.
func ContainerNamed(spec *corev1.PodSpec, name string) (*corev1.Container, bool) {
	for c, init := range Containers(spec) {
		if c.Name == name {
			return c, init
		}
	}
	return nil, false
}

// RunAsUser is the UID that the container, or its pod, specifies; nil: none.
func RunAsUser(spec *corev1.PodSpec, c *corev1.Container) *int64 {
	if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
		return c.SecurityContext.RunAsUser
	}
	if spec.SecurityContext != nil {
		return spec.SecurityContext.RunAsUser
	}
	return nil
}

// IsSidecar reports whether an init container goes on running beside those that follow it.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// MountsShm reports whether the container mounts something on /dev/shm by itself.
func MountsShm(c *corev1.Container) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/dev/shm" })
}

// LimitsMemory reports whether the pod limits the memory of all its containers together, including their files in
// memory volumes: any of them can use up the memory that another needs.
func LimitsMemory(spec *corev1.PodSpec) bool {
	if spec.Resources == nil {
		return false
	}
	_, limited := spec.Resources.Limits[corev1.ResourceMemory]
	return limited
}

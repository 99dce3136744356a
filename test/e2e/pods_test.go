package e2e

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/install"
)

// tenant is a container without a GPU that takes steps (see test/fakegpu/tenant), and then stays.
func tenant(name string, steps ...string) corev1.Container {
	return corev1.Container{Name: name, Image: install.TenantImage, Args: steps}
}

// sliced is a tenant as its author writes it: for one GPU.
func sliced(name string, steps ...string) corev1.Container {
	return asking(tenant(name, steps...))
}

// asking is c with a limit of one GPU.
func asking(c corev1.Container) corev1.Container {
	c.Resources.Limits = corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
	return c
}

// plain is a pod without anything of ours.
func plain(name string, containers ...corev1.Container) *corev1.Pod {
	// The tenant ends on SIGTERM, and one that does not is not waited for.
	grace := int64(2)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: &grace}}
}

// slice is a pod whose GPU containers ask for that much memory each.
func slice(memory, name string, containers ...corev1.Container) *corev1.Pod {
	p := plain(name, containers...)
	p.Labels[api.LabelMemory] = memory
	return p
}

// once is p with containers that are not started again.
func once(p *corev1.Pod) *corev1.Pod {
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	return p
}

// status is the status of a container, whichever list it is in; the zero value if it has none yet.
func status(p *corev1.Pod, container string) corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range list {
			if s.Name == container {
				return s
			}
		}
	}
	return corev1.ContainerStatus{}
}

// containerOf is a container of the pod, in whichever list; nil: there is none.
func containerOf(p *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

package doctor

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// limitedByDriver reports whether a container of a pod carries a variable of the driver's own limit.
func limitedByDriver(p *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.Name == nvidia.VarMemoryLimit || e.Name == nvidia.VarMemoryRequest
		})
	})
}

// sharesGPU reports whether a pod that has not ended requests a replica of a GPU under the name of such.
func sharesGPU(p *corev1.Pod) bool {
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	return !ended && slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool {
		units := c.Resources.Limits[sharedGPU]
		return !units.IsZero()
	})
}

// held is a resource of GPUs that a pod holds on a node, or waits for: node "".
type held struct {
	node     string
	resource corev1.ResourceName
}

// addHeld keeps what a pod holds of GPUs until it ends.
func (f *Facts) addHeld(p *corev1.Pod) {
	if f.Held == nil {
		f.Held = map[held]bool{}
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for name, units := range c.Resources.Limits {
			if strings.HasPrefix(string(name), nvidia.ResourcePrefix) && !units.IsZero() {
				f.Held[held{p.Spec.NodeName, name}] = true
			}
		}
	}
}

// isAPIServer reports whether a pod is an API server, as kubeadm runs it.
func isAPIServer(p *corev1.Pod) bool {
	return p.Namespace == "kube-system" && (p.Labels["component"] == "kube-apiserver" || strings.HasPrefix(p.Name, "kube-apiserver-"))
}

// isWebhook reports whether a pod is a replica of the webhook.
func isWebhook(p *corev1.Pod, system string) bool {
	return p.Namespace == system && p.DeletionTimestamp == nil &&
		p.Labels["app.kubernetes.io/name"] == "gpuslice" && p.Labels["app.kubernetes.io/component"] == "webhook"
}

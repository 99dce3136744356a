package request

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// TouchesGPU reports whether the pod requests a GPU or a slice in any way that this build reads, in containers under our names
// too.
func TouchesGPU(pod *corev1.Pod, offered []pools.Pool) bool {
	if SliceLabel(pod) != "" {
		return true
	}
	return RequestsGPUs(&pod.Spec, offered)
}

// RequestsGPUs reports whether a container names a GPU resource.
func RequestsGPUs(spec *corev1.PodSpec, offered []pools.Pool) bool {
	for c := range podspec.EveryContainer(spec) {
		if RequestsGPU(c, offered) {
			return true
		}
	}
	return false
}

// RequestsGPU reports whether the container names a GPU resource, in a quantity that can be read or not.
func RequestsGPU(c *corev1.Container, offered []pools.Pool) bool {
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if pools.IsGPU(string(name), offered) && !q.IsZero() {
				return true
			}
		}
	}
	return false
}

// RequestsFraction reports whether a container names a fraction of a GPU: a request by itself, accepted or not, and also where it is
// none that can be read.
func RequestsFraction(pod *corev1.Pod, offered []pools.Pool) bool {
	for c := range podspec.Containers(&pod.Spec) {
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				if pools.IsGPU(string(name), offered) && (q.Sign() < 0 || q.MilliValue()%1000 != 0) {
					return true
				}
			}
		}
	}
	return false
}

func LabelOrAnnotation(name string) string {
	if name == api.AnnotationContainers {
		return "annotation"
	}
	return "label"
}

// SliceLabel returns a label or annotation by which the pod requests a slice, or "".
func SliceLabel(pod *corev1.Pod) string {
	for _, reader := range labelReaders {
		if _, ok := pod.Labels[reader.label]; ok && reader.explicit {
			return reader.label
		}
	}
	if pod.Labels[api.LabelShare] == api.ShareEnabled {
		return api.LabelShare
	}
	if _, ok := pod.Annotations[api.AnnotationContainers]; ok {
		return api.AnnotationContainers
	}
	return ""
}

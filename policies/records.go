package policies

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// records are the annotations that tell what is planned and observed.
func records() []string { return []string{api.AnnotationPlanned, api.AnnotationObserved} }

// withoutRecords returns a pod without a slice as it is to be: nothing is planned or observed of it. It returns the pod itself
// where it has no such annotation.
func withoutRecords(pod *corev1.Pod) *corev1.Pod {
	if len(writtenRecords(new(corev1.Pod), pod)) == 0 {
		return pod
	}
	out := pod.DeepCopy()
	restoreRecords(new(corev1.Pod), out)
	return out
}

// restoreRecords puts the annotations of writtenRecords back as old has them.
func restoreRecords(old, updated *corev1.Pod) {
	for _, name := range writtenRecords(old, updated) {
		if was, there := old.Annotations[name]; there {
			updated.Annotations[name] = was
		} else {
			delete(updated.Annotations, name)
		}
	}
}

// writtenRecords are the annotations about what is planned and observed that an update adds or changes. Nobody but gpuslice
// writes them; everybody may remove them from a pod without a slice.
func writtenRecords(old, updated *corev1.Pod) (names []string) {
	for _, name := range records() {
		if now, there := updated.Annotations[name]; there && now != old.Annotations[name] {
			names = append(names, name)
		}
	}
	return names
}

package policies

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

// records are the annotations about planned and observed tiers.
var records = []string{api.AnnotationPlanned, api.AnnotationObserved, api.AnnotationSummary}

// withoutRecords returns a pod without a slice as it is to be: nothing is planned or observed of it. It returns the pod itself
// where it has no such annotation or label.
func withoutRecords(pod *corev1.Pod) *corev1.Pod {
	if len(writtenRecords(new(corev1.Pod), pod)) == 0 {
		return pod
	}
	out := pod.DeepCopy()
	restoreRecords(new(corev1.Pod), out)
	return out
}

// restoreRecords puts the entries of writtenRecords back as old has them.
func restoreRecords(old, updated *corev1.Pod) {
	restoreWritten(old.Annotations, updated.Annotations, records...)
	restoreWritten(old.Labels, updated.Labels, api.LabelTier)
}

func restoreWritten(old, updated map[string]string, names ...string) {
	for _, name := range written(old, updated, names...) {
		if was, there := old[name]; there {
			updated[name] = was
		} else {
			delete(updated, name)
		}
	}
}

// writtenRecords are the annotations and the label about planned and observed tiers that an update adds or changes.
// Only gpuslice writes them; everybody may remove them from a pod without a slice.
func writtenRecords(old, updated *corev1.Pod) (out []string) {
	for _, name := range written(old.Annotations, updated.Annotations, records...) {
		out = append(out, "annotation "+name)
	}
	for _, name := range written(old.Labels, updated.Labels, api.LabelTier) {
		out = append(out, "label "+name)
	}
	return out
}

// written are those of the names that are added or changed.
func written(old, updated map[string]string, names ...string) (changed []string) {
	for _, name := range names {
		if now, there := updated[name]; there && now != old[name] {
			changed = append(changed, name)
		}
	}
	return changed
}

package policies

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/request"
)

// copiedWithoutLabels describes a pod that was most likely copied from one in a slice, without the labels that requested the slice; "":
// it was not. kubectl debug --copy-to leaves them out.
func copiedWithoutLabels(pod *corev1.Pod) string {
	if request.SliceLabel(pod) != "" || pod.Annotations[api.AnnotationPromise] != "" {
		return ""
	}
	for i := range pod.Spec.InitContainers {
		if podspec.IsOurs(pod.Spec.InitContainers[i].Name) {
			return fmt.Sprintf("the pod has gpuslice's containers, and no label requests a slice: a copy needs the labels of its original, such as %s "+
				"(kubectl debug --copy-to: add --keep-labels)", api.LabelMemory)
		}
	}
	return ""
}

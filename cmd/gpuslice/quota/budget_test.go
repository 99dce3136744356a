package quota

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

func TestHoldersLargestFirst(t *testing.T) {
	var pods []corev1.Pod
	for i := range maxHolders + 3 {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("p", i)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(i), resource.DecimalSI)}}}}}})
	}
	got := holders(pods, nil)
	if len(got) != maxHolders || got[0].Pod != "p7" || got[0].GPUs != 7 || got[0].Promised || got[4].Pod != "p3" {
		t.Errorf("%+v", got)
	}
}

func TestHoldersOfSlices(t *testing.T) {
	promise := promise.Promise{Version: promise.Version, Namespace: "a", Strategy: "mps", Charge: quota.Charge{Memory: 4096, Slices: 1}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", Annotations: map[string]string{api.AnnotationPromise: promise.Encode()}}}
	want := Holder{Namespace: "a", Pod: "p", Memory: 4 << 30, Slices: 1, Promised: true}
	if got := holders([]corev1.Pod{pod}, nil); len(got) != 1 || got[0] != want {
		t.Errorf("%+v", got)
	}
	pod.Namespace = "b" // a promise of another namespace's
	if got := holders([]corev1.Pod{pod}, nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

package budget

import (
	"bytes"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// alone is a cluster of which nothing is known.
func alone(pod *corev1.Pod) accounting.PodClaims {
	return accounting.PodClaims{Pod: pod, DeviceClasses: accounting.DeviceClasses{Policy: &config.Policy{}}}
}

func TestHoldersOfClaims(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"},
		Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "c"}}}}
	want := Holder{Namespace: "a", Pod: "p", Slices: 32, GPUs: 32, Devices: 32} // it is not known which
	if got, unknown := Holders(promise.Keys{}, []corev1.Pod{pod}, alone); len(got) != 1 || got[0] != want || !unknown {
		t.Errorf("%+v, memory unknown: %t", got, unknown)
	}
}

func TestHoldersLargestFirst(t *testing.T) {
	var pods []corev1.Pod
	for i := range maxHolders + 3 {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("p", i)},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c",
				Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(i), resource.DecimalSI)},
				}}}}})
	}
	got, _ := Holders(promise.Keys{}, pods, alone)
	if len(got) != maxHolders || got[0].Pod != "p7" || got[0].GPUs != 7 || got[0].Promised || got[4].Pod != "p3" {
		t.Errorf("%+v", got)
	}
}

func TestHoldersOfSlices(t *testing.T) {
	given := promise.Promise{Version: promise.Version, Namespace: "a", Strategy: "mps", Charge: quota.Charge{Memory: 4096, Slices: 1}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p",
		Annotations: map[string]string{api.AnnotationPromise: given.Encode()}}}
	want := Holder{Namespace: "a", Pod: "p", Memory: 4 << 30, Slices: 1, Promised: true}
	if got, unknown := Holders(promise.Keys{}, []corev1.Pod{pod}, alone); len(got) != 1 || got[0] != want || unknown {
		t.Errorf("%+v, memory unknown: %t", got, unknown)
	}
	pod.Namespace = "b" // a promise of another namespace's
	if got, _ := Holders(promise.Keys{}, []corev1.Pod{pod}, alone); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestHoldersUntrusted: where the keys may be read, a promise that none of them signed counts as whole devices.
func TestHoldersUntrusted(t *testing.T) {
	lost, current := promise.NewKeys(bytes.Repeat([]byte("l"), 32)), promise.NewKeys(bytes.Repeat([]byte("c"), 32))
	given := promise.Promise{Version: promise.Version, Namespace: "a", Strategy: "mps", Charge: quota.Charge{Memory: 4096, Slices: 1}}
	for _, c := range []struct {
		name   string
		signer promise.Keys
		want   Holder
	}{
		{"signed by a lost key", lost, Holder{Namespace: "a", Pod: "p", GPUs: 1, Devices: 1, Untrusted: true}},
		{"signed by the installation's key", current, Holder{Namespace: "a", Pod: "p", Memory: 4 << 30, Slices: 1, Promised: true}},
	} {
		c.signer.Sign(&given)
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p",
			Annotations: map[string]string{api.AnnotationPromise: given.Encode()}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}},
			}}}
		if got, _ := Holders(current, []corev1.Pod{pod}, alone); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

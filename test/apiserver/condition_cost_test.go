package apiserver

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
)

// crowded are as many annotations as a pod may have, with names as short or as long as prefix makes them.
func crowded(prefix string) map[string]string {
	annotations := map[string]string{}
	for size := 0; size < 240<<10; {
		key := fmt.Sprint(prefix, len(annotations))
		annotations[key] = ""
		size += len(key)
	}
	return annotations
}

// TestConditionCost holds the match conditions against the API server's bound on what CEL may cost, beyond which failurePolicy decides:
// a pod that uses no GPU would be denied, and the mutating webhook would be passed by.
func TestConditionCost(t *testing.T) {
	for name, prefix := range map[string]string{"short": "k", "longer": "example.test/annotation-", "devices": "devices-"} {
		t.Run("annotations with "+name+" names", func(t *testing.T) {
			i := need(t)
			setUpReapply(t, i, "cost-"+name)
			pods := i.Server.Client.CoreV1().Pods("cost-" + name)
			annotations := crowded(prefix)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain", Annotations: annotations, Finalizers: []string{"example.test/hold"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "x"}}}}
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Errorf("%d annotations: create: %v", len(annotations), err)
			}
			patch := func(pod, change string) (*corev1.Pod, error) {
				return pods.Patch(t.Context(), pod, types.MergePatchType, []byte(change), metav1.PatchOptions{})
			}
			if _, err := patch("plain", `{"metadata":{"labels":{"a":"b"}}}`); err != nil {
				t.Errorf("%d annotations: update: %v", len(annotations), err)
			}
			_, err := patch("plain", `{"metadata":{"annotations":{"cdi.k8s.io/gpu":"nvidia.com/gpu=all"}}}`)
			deniedByUs(t, "an annotation that takes devices", err, "an annotation that takes devices")
			if err := pods.Delete(t.Context(), "plain", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Errorf("delete: %v", err)
			}
			if _, err := patch("plain", `{"metadata":{"finalizers":null}}`); err != nil {
				t.Errorf("its finalizer cannot go: %v", err)
			}
			sliced := asPod(t, podOf(t, "sliced", "cost-"+name, manifests["label"]))
			sliced.Annotations = annotations
			made, err := pods.Create(t.Context(), sliced, metav1.CreateOptions{})
			if err != nil {
				t.Fatalf("%d annotations: create with a slice: %v", len(annotations), err)
			}
			if made.Annotations[api.AnnotationPromise] == "" {
				t.Error("the pod gets no slice")
			}
			after, err := patch("sliced", `{"metadata":{"annotations":{"gpuslice.dev/planned":"{}","a":"b"}}}`)
			if err != nil || after.Annotations[api.AnnotationPlanned] != made.Annotations[api.AnnotationPlanned] {
				t.Errorf("what is planned is changed: %v", err)
			}
		})
	}
}

// TestConditionCostOfVariables does the same for as many environment variables as etcd takes: each stands in the managed
// fields as well.
func TestConditionCostOfVariables(t *testing.T) {
	i := need(t)
	setUpReapply(t, i, "cost-env")
	pods := i.Server.Client.CoreV1().Pods("cost-env")
	crowd := func(name string, containers, each int) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for c := range containers {
			crowded := corev1.Container{Name: fmt.Sprint("c", c), Image: "x"}
			for e := range each {
				crowded.Env = append(crowded.Env, corev1.EnvVar{Name: fmt.Sprint("NVIDIB_", e)})
			}
			pod.Spec.Containers = append(pod.Spec.Containers, crowded)
		}
		return pod
	}
	for _, tc := range []struct {
		name             string
		containers, each int
	}{{"one", 1, 17_000}, {"many", 100, 170}} {
		began := time.Now()
		pod := crowd(tc.name, tc.containers, tc.each)
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Errorf("%d containers with %d variables each: create: %v", tc.containers, tc.each, err)
			continue
		}
		t.Logf("%d containers with %d variables each: created within %s", tc.containers, tc.each, time.Since(began))
		if _, err := pods.Patch(t.Context(), tc.name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
			t.Errorf("%d containers with %d variables each: update: %v", tc.containers, tc.each, err)
		}
	}
	// The last variable is the one that takes devices.
	taking := crowd("taking", 1, 17_000)
	last := &taking.Spec.Containers[0].Env[16_999]
	last.Name, last.Value = "NVIDIA_VISIBLE_DEVICES", "all"
	made, err := pods.Create(t.Context(), taking, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := made.Spec.Containers[0].Env[16_999]; got.Value != "void" {
		t.Errorf("the container sees the devices %q", got.Value)
	}
}

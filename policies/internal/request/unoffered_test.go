package request

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// TestUnofferedOfHostilePod: a pod that the API server has not validated yet costs no more than it is read for.
func TestUnofferedOfHostilePod(t *testing.T) {
	limits := corev1.ResourceList{}
	for i := range 2000 {
		limits[corev1.ResourceName(fmt.Sprint("nvidia.com/xgpu", i))] = resource.MustParse("1")
	}
	limits[corev1.ResourceName("nvidia.com/gpu"+strings.Repeat("x", 1<<20))] = resource.MustParse("1")
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: strings.Repeat("a", 200_000), Resources: corev1.ResourceRequirements{Limits: limits}}}}}
	all := []pools.Pool{{Name: "p", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", DeviceMemory: 81920, Replicas: 4}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	warnings := append(Unoffered(pod, all, nil, nil), Unrequested(pod, all, nil)...)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d MiB are allocated", used>>20)
	}
	if len(warnings) == 0 || len(strings.Join(warnings, "")) > 16<<10 {
		t.Errorf("%d warnings of %d bytes", len(warnings), len(strings.Join(warnings, "")))
	}
}

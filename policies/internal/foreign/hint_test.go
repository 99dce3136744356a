package foreign

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"nvidia.com/gpumem", "3000", `nvidia.com/gpumem is read by HAMi, not by gpuslice; for a slice write the label gpuslice.dev/memory: "3000Mi"`},
		{"nvidia.com/gpumem-percentage", "30", `gpuslice.dev/fraction: "30pct"`},
		{"nvidia.com/gpucores", "30", `gpuslice.dev/compute: "30"`},
		{"aliyun.com/gpu-mem", "8", `gpuslice.dev/memory: "8192Mi"`},
		{"tencent.com/vcuda-memory", "30", `gpuslice.dev/memory: "7680Mi"`},
		{"koordinator.sh/gpu-memory", "8Gi", `gpuslice.dev/memory: "8192Mi"`},
		{"volcano.sh/vgpu-number", "2", `nvidia.com/gpu: 2`},
		{"nvidia.com/vgpu-cores", "400", `write one of gpuslice's labels`},
		{"nvidia.com/gpumem", "1e18", `write one of gpuslice's labels`},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceName(c.name): resource.MustParse(c.value)}}}}}}
		if got := Hints(pod); len(got) != 1 || !strings.Contains(got[0], c.want) || !strings.HasPrefix(got[0], `container "a": `+c.name) {
			t.Errorf("%s: %s: got %q, want %q", c.name, c.value, got, c.want)
		}
	}
	for _, c := range []struct{ name, value, want string }{
		{"gpu-memory", "4000", `gpu-memory is read by KAI or Run:ai, not by gpuslice; for a slice write the label gpuslice.dev/memory: "4000Mi"`},
		{"gpu-fraction", "0.25", `gpuslice.dev/fraction: "0.25"`},
		{"gpu-memory-limit", "8000", `gpuslice.dev/memory-limit: "8000Mi"`},
		{"sharedgpu/gpu_mem", "8589934592", `gpuslice.dev/memory: "8192Mi"`},
		{"tensor-fusion.ai/vram-request", "8Gi", `gpuslice.dev/memory: "8192Mi"`},
		{"gpu-fraction", strings.Repeat("9", 100), `write one of gpuslice's labels`},
	} {
		for _, pod := range []*corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{c.name: c.value}}}, {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{c.name: c.value}}},
		} {
			if got := Hints(pod); len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("%s: %s: got %q, want %q", c.name, c.value, got, c.want)
			}
		}
	}
	if got := Hints(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"mps": "true"}, Labels: map[string]string{"app": "x"}}}); got != nil {
		t.Errorf("a pod that requests nothing: %q", got)
	}
}

package spellings

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requesting is a pod whose container requests quantities, written as "name=quantity".
func requesting(t testing.TB, pairs ...string) *corev1.Pod {
	t.Helper()
	limits := corev1.ResourceList{}
	for _, p := range pairs {
		name, text, _ := strings.Cut(p, "=")
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatal(err)
		}
		limits[corev1.ResourceName(name)] = q
	}
	return &corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Limits: limits}}}},
	}
}

func TestHintOfResources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ requested, want string }{
		{"nvidia.com/gpumem=3000",
			`nvidia.com/gpumem is read by HAMi, not by gpuslice; for a slice write the label gpuslice.dev/memory: "3000Mi"`},
		{"nvidia.com/gpumem-percentage=30", `gpuslice.dev/fraction: "0.3"`},
		{"nvidia.com/gpumem-percentage=33", `gpuslice.dev/fraction: "0.33"`},
		{"nvidia.com/gpucores=30", `gpuslice.dev/compute: "30"`},
		{"nvidia.com/gpucores=30 nvidia.com/gpumem=3000",
			`nvidia.com/gpucores and nvidia.com/gpumem are read by HAMi, not by gpuslice; for a slice write the labels gpuslice.dev/memory: "3000Mi", gpuslice.dev/compute: "30"`},
		{"nvidia.com/gpumem-percentage=30 nvidia.com/gpumem=3000", `write one of gpuslice's labels`},
		{"nvidia.com/gpumem-percentage=101", `write one of gpuslice's labels`},
		{"nvidia.com/gpumem=500m", `write one of gpuslice's labels`},
		{"nvidia.com/gpumem=1073741824", `gpuslice.dev/memory: "1048576Gi"`},
		{"nvidia.com/gpumem=1073741825", `write one of gpuslice's labels`},
		{"nvidia.com/gpumem=1e18", `write one of gpuslice's labels`},
		{"nvidia.com/gpumem=-1", `write one of gpuslice's labels`},
		{"aliyun.com/gpu-mem=8", `gpuslice.dev/memory: "8Gi"`},
		{"aliyun.com/gpu-mem=8 aliyun.com/gpu-count=2", `nvidia.com/gpu: 2 and the label gpuslice.dev/memory: "4Gi"`},
		{"tencent.com/vcuda-memory=30", `gpuslice.dev/memory: "7680Mi"`},
		{"tencent.com/vcuda-memory=30 tencent.com/vcuda-core=50", `gpuslice.dev/memory: "7680Mi", gpuslice.dev/compute: "50"`},
		{"tencent.com/vcuda-core=200", `nvidia.com/gpu: 2 and the labels gpuslice.dev/fraction: "1", gpuslice.dev/compute: "100"`},
		{"koordinator.sh/gpu-memory=8Gi", `gpuslice.dev/memory: "8Gi"`},
		{"koordinator.sh/gpu-memory=4Gi koordinator.sh/gpu-core=100 koordinator.sh/gpu.shared=2",
			`nvidia.com/gpu: 2 and the labels gpuslice.dev/memory: "2Gi", gpuslice.dev/compute: "50"`},
		{"koordinator.sh/gpu-memory-ratio=200", `nvidia.com/gpu: 2 and the label gpuslice.dev/fraction: "1"`},
		{"koordinator.sh/gpu-memory-ratio=150", `write one of gpuslice's labels`},
		{"koordinator.sh/gpu-memory-ratio=75 koordinator.sh/gpu.shared=2", `write one of gpuslice's labels`},
		{"koordinator.sh/gpu=50", `gpuslice.dev/fraction: "0.5", gpuslice.dev/compute: "50"`},
		{"volcano.sh/vgpu-number=2", `nvidia.com/gpu: 2`},
		{"volcano.sh/vgpu-number=2 volcano.sh/vgpu-memory=4096", `nvidia.com/gpu: 2 and the label gpuslice.dev/memory: "4Gi"`},
		{"nvidia.com/vgpu-cores=400", `write one of gpuslice's labels`},
		{"nvidia.com/gpu-10gb=1", `gpuslice.dev/memory: "10Gi"`},
		{"nvidia.com/gpu-10gb=2", `write one of gpuslice's labels`},
		{"nvidia.com/gpu-0gb=1", `write one of gpuslice's labels`},
	} {
		names := strings.Fields(c.requested)
		got := Find(requesting(t, names...), nil)
		if len(got) != 1 || !strings.Contains(got[0].Hint(), c.want) ||
			!strings.HasPrefix(got[0].Hint(), `container "a": `) || len(got[0].Names) != len(names) {
			t.Errorf("%s: got %+v, want %q", c.requested, got, c.want)
		}
	}
	for _, name := range []string{"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/gpu-a100",
		"nvidia.com/mig-1g.5gb", "nvidia.com/priority", "cpu"} {
		if got := Find(requesting(t, name+"=1"), nil); got != nil {
			t.Errorf("%s is of another system: %+v", name, got)
		}
	}
	if got := Find(requesting(t, "nvidia.com/gpumem=0"), nil); got != nil {
		t.Errorf("nothing is requested: %+v", got)
	}
}

func TestHintOfWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"gpu-memory", "4000", `gpu-memory is read by KAI or Run:ai, not by gpuslice; for a slice write the label gpuslice.dev/memory: "4000Mi"`},
		{"gpu-fraction", "0.25", `gpuslice.dev/fraction: "0.25"`},
		{"gpu-memory-limit", "8000", `gpuslice.dev/memory-limit: "8000Mi"`},
		{"sharedgpu/gpu_mem", "8589934592", `gpuslice.dev/memory: "8Gi"`},
		{"sharedgpu/gpu_request", "0.5", `gpuslice.dev/fraction: "0.5"`},
		{"sharedgpu/gpu_limit", "1.0", `gpuslice.dev/compute: "100"`},
		{"tensor-fusion.ai/vram-request", "8Gi", `gpuslice.dev/memory: "8Gi"`},
		{"gpu-fraction", strings.Repeat("9", 100), `write one of gpuslice's labels`},
		{"gpu-memory", "1e10000000", `write one of gpuslice's labels`},
		{"gpu-memory", "٣", `write one of gpuslice's labels`},
		{"gpu-memory", "", `write one of gpuslice's labels`},
		{"gpu-memory", "4Gi", `write one of gpuslice's labels`},
	} {
		for _, pod := range []*corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{c.name: c.value}}},
			{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{c.name: c.value}}},
		} {
			if got := Find(pod, nil); len(got) != 1 || !strings.Contains(got[0].Hint(), c.want) {
				t.Errorf("%s: %s: got %+v, want %q", c.name, c.value, got, c.want)
			}
		}
	}
	if got := Find(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"mps": "true"},
		Labels: map[string]string{"app": "x"}}}, nil); got != nil {
		t.Errorf("a pod that requests nothing: %+v", got)
	}
}

// TestFindBounds: neither many names nor many containers make more than is bounded.
func TestFindBounds(t *testing.T) {
	t.Parallel()
	pod := requesting(t, "nvidia.com/gpumem=3000")
	pod.Annotations = map[string]string{}
	for i := range 10_000 {
		pod.Annotations["nvidia.com/container."+strings.Repeat("c", 1+i%50)+string(rune('a'+i%26))+".gpu-memory.request"] = "8Gi"
	}
	if got := Find(pod, nil); len(got) != 1 || got[0].Err == nil || got[0].Spelling.Name != "" {
		t.Errorf("%+v", got)
	}
}

// FuzzFind: whatever is written, reading it ends, twice alike, and what can be read is in bounds.
func FuzzFind(f *testing.F) {
	for _, seed := range [][4]string{
		{"nvidia.com/gpumem", "3000", "gpu-fraction", "0.5"}, {"koordinator.sh/gpu", "200", "sharedgpu/gpu_limit", "0.3"},
		{"nvidia.com/gpu-10gb", "1", "nvidia.com/container.a.gpu-memory.request", "8Gi"},
		{"tencent.com/vcuda-core", "1e3", "aliyun.com/gpu-count", "2"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, name, amount, word, text string) {
		if len(amount) > 20 {
			return // denied before it is parsed
		}
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			q = resource.MustParse("1")
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{word: text}, Labels: map[string]string{word: text}},
			Spec: corev1.PodSpec{NodeSelector: map[string]string{word: text},
				Containers: []corev1.Container{
					{Name: "a", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(name): q}}},
				}},
		}
		got, again := Find(pod, nil), Find(pod, nil)
		if len(got) != len(again) {
			t.Fatalf("%d requests, then %d", len(got), len(again))
		}
		for i, one := range got {
			if one.Hint() != again[i].Hint() || !maps.Equal(one.Resources, again[i].Resources) {
				t.Errorf("%+v, then %+v", one, again[i])
			}
			if err := one.Part.Size.Bounded(); err != nil || one.Part.Size.Memory < 0 || one.Part.GPUs < 0 || one.Part.GPUs > 64 {
				t.Errorf("%+v: %v", one.Part, err)
			}
		}
	})
}

// TestResources: a promise that a tenant writes restores no other resource, and no quantity that is costly to read.
func TestResources(t *testing.T) {
	t.Parallel()
	for name, quantities := range map[string]map[string]string{
		"cpu": {"cpu": "64"}, "a GPU": {"nvidia.com/gpu": "8"}, "a costly quantity": {"nvidia.com/gpumem": "1e10000000"},
		"no quantity": {"nvidia.com/gpumem": "many"}, "one among others": {"nvidia.com/gpumem": "3k", "memory": "1Ti"},
	} {
		if Resources(quantities) {
			t.Errorf("%s would be restored", name)
		}
	}
	if !Resources(map[string]string{"nvidia.com/gpumem": "3k", "nvidia.com/gpu-10gb": "1"}) {
		t.Error("what is removed from a pod would not be restored")
	}
}

package translate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	patch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/policies/translate"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// translated is raw with the translation's operations; "": it is not translated.
func translated(t testing.TB, raw []byte) (translate.Translation, []byte) {
	t.Helper()
	var result translate.Translation
	operations, err := result.Read(raw)
	if err != nil || result.Pod == nil {
		return result, nil
	}
	text, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := patch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded.Apply(raw)
	if err != nil {
		t.Fatalf("the operations do not apply: %v\n%s\n%s", err, text, raw)
	}
	return result, after
}

// asked is what a pod requests where those systems are accepted: the words by which it does are left out.
func asked(t testing.TB, raw []byte, accept ...string) api.Request {
	t.Helper()
	pod, violation, err := rawpod.Decode(raw)
	if err != nil || violation != nil {
		t.Fatal(err, violation)
	}
	req, _, _, violations := request.Read(pod.Pod, &config.Policy{Accept: accept}, nil, nil)
	if len(violations) > 0 {
		t.Fatalf("%+v\n%s", violations, raw)
	}
	req.Spellings = nil
	req.Share = strings.TrimSuffix(req.Share, api.ShareEnabled) // it is explicit
	for i := range req.Containers {
		req.Containers[i].Resource, req.Containers[i].Quantity, req.Containers[i].Foreign = "", "", nil
	}
	return req
}

// TestScenarios translates the pod of each scenario that uses another system's words, and compares what both request.
func TestScenarios(t *testing.T) {
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	systems := map[string]bool{}
	for _, s := range all {
		result, after := translated(t, s.Pod)
		if after == nil {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if diff := cmp.Diff(asked(t, s.Pod, translate.Translation{}.Known()...), asked(t, after)); diff != "" {
				t.Errorf("the translation requests something else (-before +after):\n%s\n%s", diff, after)
			}
			again, twice := translated(t, after)
			left := slices.DeleteFunc(again.Systems, func(name string) bool { return name == "gke" }) // its selectors stay
			if len(left) > 0 || twice != nil && string(twice) != string(after) {
				t.Errorf("the translation still has words of %v:\n%s", left, after)
			}
		})
		for _, name := range result.Systems {
			systems[name] = true
		}
	}
	for _, name := range (translate.Translation{}).Known() {
		if !systems[name] {
			t.Errorf("no scenario has a pod for %s", name)
		}
	}
}

func TestPod(t *testing.T) {
	pod := func(do func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
		do(p)
		return p
	}
	t.Run("containers of different sizes have the annotation", func(t *testing.T) {
		p := pod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{"nvidia.com/container.a.gpu-memory.request": "4Gi", "nvidia.com/container.b.gpu-memory.request": "8Gi"}
		})
		got := translation(t, p)
		if got.Pod == nil || got.Pod.Annotations[api.AnnotationContainers] != `{"a":{"memory":"4Gi"},"b":{"memory":"8Gi"}}` ||
			len(got.Pod.Annotations) != 1 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("what has no form is named", func(t *testing.T) {
		p := pod(func(p *corev1.Pod) {
			p.Spec.SchedulerName = "hami-scheduler"
			p.Annotations = map[string]string{"nvidia.com/use-gputype": "A100"}
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"),
				"nvidia.com/gpumem": resource.MustParse("4096")}
		})
		got := translation(t, p)
		notes := strings.Join(got.Notes, "\n")
		if got.Pod == nil || got.Pod.Spec.SchedulerName != "" ||
			!strings.Contains(notes, "nvidia.com/use-gputype") || !strings.Contains(notes, "hami-scheduler") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("what cannot be read is a problem", func(t *testing.T) {
		got := translation(t, pod(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"),
				"nvidia.com/gpumem-percentage": resource.MustParse("150")}
		}))
		if got.Pod != nil || len(got.Problems) == 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a node selector alone requests nothing", func(t *testing.T) {
		got := translation(t, pod(func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"cloud.google.com/gke-max-shared-clients-per-gpu": "4"}
		}))
		if got.Pod != nil || got.Has("") || len(got.Problems) > 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("too many words are a problem", func(t *testing.T) {
		got := translation(t, pod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{}
			for i := range 520 {
				p.Annotations[fmt.Sprintf("nvidia.com/container.c%d.gpu-memory.request", i)] = "8Gi"
			}
		}))
		if got.Pod != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "more than 512 names") || !got.Has("hami") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a pod without another system's words is left alone", func(t *testing.T) {
		got := translation(t, pod(func(p *corev1.Pod) { p.Labels = map[string]string{api.LabelMemory: "nonsense"} }))
		if got.Pod != nil || len(got.Systems)+len(got.Problems) > 0 {
			t.Errorf("%+v", got)
		}
	})
}

// translation is that of a pod.
func translation(t *testing.T, pod *corev1.Pod) translate.Translation {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	result, _ := translated(t, raw)
	return result
}

// TestCombinations: what several systems' words request together, the translation requests too, if there is one.
func TestCombinations(t *testing.T) {
	resources := []string{"", "nvidia.com/gpu=1", "nvidia.com/gpu=2", "nvidia.com/gpu=250m", "nvidia.com/gpumem=2000",
		"nvidia.com/gpucores=30", "koordinator.sh/gpu=50", "volcano.sh/vgpu-number=2"}
	words := []string{"", "gpu-memory=2000", "gpu-fraction=0.5", "gpu-fraction-num-devices=2", "gpu-memory-limit=3000",
		"gpu-fraction-container-name=b", "sharedgpu/gpu_limit=0.3", "tensor-fusion.ai/gpu-count=2",
		"nvidia.com/container.b.gpu-compute.mode=time-slicing", "nvidia.com/container.b.gpu-memory.request=4Gi",
		"gpuslice.dev/containers={\"a\":{\"memory\":\"1Gi\"}}"}
	labels := []string{"", "gpuslice.dev/memory=2000Mi", "gpuslice.dev/compute=30", "gpuslice.dev/memory-limit=3000Mi",
		"gpuslice.dev/share=disabled", "gpuslice.dev/container=a", "gpuslice.dev/strategy=time-slicing"}
	translations := 0
	for _, inA := range resources {
		for _, inB := range resources[:4] {
			for i, word := range words {
				for _, second := range words[i:] {
					for _, label := range labels {
						p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{}, Labels: map[string]string{}},
							Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Resources: limited(inA)}, {Name: "b", Resources: limited(inB)}}}}
						set(p.Annotations, word)
						set(p.Annotations, second)
						set(p.Labels, label)
						raw, err := json.Marshal(p)
						if err != nil {
							t.Fatal(err)
						}
						if _, after := translated(t, raw); after != nil {
							translations++
							if diff := cmp.Diff(asked(t, raw, translate.Translation{}.Known()...), asked(t, after)); diff != "" {
								t.Fatalf("the translation requests something else (-before +after):\n%s\n%s\n%s", diff, raw, after)
							}
						}
					}
				}
			}
		}
	}
	if translations < 1000 {
		t.Errorf("only %d translations", translations)
	}
}

func limited(pair string) (r corev1.ResourceRequirements) {
	if name, text, ok := strings.Cut(pair, "="); ok {
		r.Limits = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(text)}
	}
	return r
}

func set(entries map[string]string, pair string) {
	if name, text, ok := strings.Cut(pair, "="); ok {
		entries[name] = text
	}
}

func FuzzRead(f *testing.F) {
	all, err := scenarios.All()
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range all {
		if strings.HasPrefix(s.Name, "spelling-") {
			f.Add(string(s.Pod))
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		result, after := translated(t, []byte(raw))
		if after != nil && len(result.Problems) > 0 {
			t.Errorf("translated in spite of %v", result.Problems)
		}
	})
}

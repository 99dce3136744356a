package policies_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
)

func TestImages(t *testing.T) {
	t.Parallel()
	const pytorch = "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
	for _, tt := range []struct {
		name, policy, image, denied, warned string
	}{
		{"a version that keeps the cap", "minimumEnforcement: framework\nguard: {enabled: false}\n",
			"pytorch/pytorch:2.11.0-cuda12.8-cudnn9-runtime", "", ""},
		{"no framework, where its cap is demanded", "minimumEnforcement: framework\nguard: {enabled: false}\n",
			"example.test/app:1", "below the minimum enforcement", ""},
		{"no framework, where the guard suffices", "minimumEnforcement: framework\n", "example.test/app:1", "", "has no cap on this pod"},
		{"no framework, where nothing is demanded", "", "example.test/app:1", "", "none that is known"},
		{"a framework whose arguments policy denies", "frameworks: {vllm: {arguments: deny}}\n",
			"vllm/vllm-openai:v0.6.0", "framework argument", ""},
		{"a version without the cap, where it is demanded", "minimumEnforcement: framework\nguard: {enabled: false}\n",
			"pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime", "below the minimum enforcement", ""},
	} {
		in, pod := brought(t, tt.policy)
		pod.Spec.Containers[0].Image = pytorch
		in.Pod = pod
		d := imageChanged(t, in, tt.image)
		if denied := d.Outcome == policies.Denied; denied != (tt.denied != "") || !strings.Contains(d.Message(), tt.denied) {
			t.Errorf("%s: %s %s, want %q", tt.name, d.Outcome, d.Message(), tt.denied)
		}
		if warned := strings.Join(d.Warnings, "; "); (warned != "") != (tt.warned != "") || !strings.Contains(warned, tt.warned) {
			t.Errorf("%s: warned %q, want %q", tt.name, warned, tt.warned)
		}
	}
}

// imageChanged is the decision about a live pod of which one container gets another image.
func imageChanged(t *testing.T, in policies.Input, image string) policies.Decision {
	t.Helper()
	old := rewritten(t, in)
	in.Pod = old.DeepCopy()
	in.Pod.Spec.Containers[0].Image = image
	d, err := verifyChange(change(t, in, old, ""))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestImagesUnderTheShim changes the image of a container that the shim caps: the shim is there for the next one too.
func TestImagesUnderTheShim(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, image, denied string }{
		{"another release that it caps", "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", ""},
		{"one that is older than the call", "pytorch/pytorch:1.7.1-cuda11.0-cudnn8-runtime", "below the minimum enforcement"},
		{"no framework", "example.test/app:1", "below the minimum enforcement"},
	} {
		in, pod := brought(t, "minimumEnforcement: framework\nguard: {dryRun: true}\nframeworks: {pytorch: {shim: on}}\n")
		pod.Spec.Containers[0].Command = []string{"python", "train.py"}
		in.Pod = pod
		d := imageChanged(t, in, tt.image)
		if denied := d.Outcome == policies.Denied; denied != (tt.denied != "") || !strings.Contains(d.Message(), tt.denied) {
			t.Errorf("%s: %s %s, want %q", tt.name, d.Outcome, d.Message(), tt.denied)
		}
	}
}

// TestPlannedAfterImage changes the image of one of two containers, and changes it back.
func TestPlannedAfterImage(t *testing.T) {
	t.Parallel()
	in, pod := brought(t, "")
	pod.Spec.Containers[0].Image = "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
	pod.Spec.Containers = append(pod.Spec.Containers, asksGPU("second"))
	in.Pod = pod
	created := rewritten(t, in)
	planned := func(pod *corev1.Pod) (p promise.Planned) {
		if err := json.Unmarshal([]byte(pod.Annotations[api.AnnotationPlanned]), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	before := planned(created)
	to := func(old *corev1.Pod, image string) *corev1.Pod {
		in.Pod = old.DeepCopy()
		in.Pod.Spec.Containers[0].Image = image
		out := updatedPod(t, in, old, "")
		in.Pod = out
		if d, err := verifyChange(change(t, in, old, "")); err != nil || d.Outcome == policies.Denied {
			t.Fatalf("to %s: %s %v", image, d.Message(), err)
		}
		in.Pod = out.DeepCopy()
		in.Pod.Annotations[api.AnnotationPlanned] = old.Annotations[api.AnnotationPlanned] // the mutating webhook was not called
		if d, err := verifyChange(change(t, in, old, "")); err != nil || d.Outcome == policies.Denied {
			t.Fatalf("to %s, planned as before: %s %v", image, d.Message(), err)
		}
		in.Pod.Annotations[api.AnnotationPlanned] = "{}"
		if d, err := verifyChange(change(t, in, old, "")); err != nil || d.Outcome != policies.Denied {
			t.Fatalf("to %s, planned by another hand: %s %v", image, d.Outcome, err)
		}
		return out
	}
	other := to(created, "vllm/vllm-openai:v0.6.0")
	now := planned(other)
	first := now.Containers[0]
	if !strings.HasPrefix(first.Framework, "vllm") || first.Cap != "" || slices.Contains(first.Tiers, api.TierFramework) {
		t.Errorf("planned is still for the first image: %+v", first)
	}
	if diff := cmp.Diff(before.Containers[1], now.Containers[1]); diff != "" {
		t.Errorf("the other container (-want +got)\n%s", diff)
	}
	if !strings.Contains(strings.Join(now.Notes, "; "), `"main" has another image than it was created with`) {
		t.Errorf("no note tells of it: %q", now.Notes)
	}
	if other.Annotations[api.AnnotationPromise] != created.Annotations[api.AnnotationPromise] {
		t.Error("the promise changes")
	}
	again := planned(to(other, "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"))
	if diff := cmp.Diff(before, again); diff != "" {
		t.Errorf("with the first image again (-want +got)\n%s", diff)
	}
}

package policies_test

import (
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/policies"
)

func TestImages(t *testing.T) {
	t.Parallel()
	const pytorch = "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
	for _, tt := range []struct {
		name, policy, image, denied, warned string
	}{
		{"a version that keeps the cap", "minimumEnforcement: framework\nguard: {enabled: false}\n", "pytorch/pytorch:2.11.0-cuda12.8-cudnn9-runtime", "", ""},
		{"no framework, where its cap is demanded", "minimumEnforcement: framework\nguard: {enabled: false}\n", "example.test/app:1", "below the minimum enforcement", ""},
		{"no framework, where the guard suffices", "minimumEnforcement: framework\n", "example.test/app:1", "", "has no cap on this pod"},
		{"no framework, where nothing is demanded", "", "example.test/app:1", "", "none that is known"},
		{"a framework whose arguments policy denies", "frameworks: {vllm: {arguments: deny}}\n", "vllm/vllm-openai:v0.6.0", "framework argument", ""},
		{"a version without the cap, where it is demanded", "minimumEnforcement: framework\nguard: {enabled: false}\n", "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime", "below the minimum enforcement", ""},
	} {
		in, pod := brought(t, tt.policy)
		pod.Spec.Containers[0].Image = pytorch
		in.Pod = pod
		old := rewritten(t, in)
		in.Pod = old.DeepCopy()
		in.Pod.Spec.Containers[0].Image = tt.image
		d, err := verifyChange(change(t, in, old, ""))
		if err != nil {
			t.Fatal(err)
		}
		if denied := d.Outcome == policies.Denied; denied != (tt.denied != "") || !strings.Contains(d.Message(), tt.denied) {
			t.Errorf("%s: %s %s, want %q", tt.name, d.Outcome, d.Message(), tt.denied)
		}
		if warned := strings.Join(d.Warnings, "; "); (warned != "") != (tt.warned != "") || !strings.Contains(warned, tt.warned) {
			t.Errorf("%s: warned %q, want %q", tt.name, warned, tt.warned)
		}
	}
}

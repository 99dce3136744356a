package policies_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// shown is what people see of a pod's slice.
func shown(pod *corev1.Pod) [2]string {
	return [2]string{pod.Annotations[api.AnnotationSummary], pod.Labels[api.LabelTier]}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	t.Run("only what was given, or less, passes the validating webhook", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct {
			change func(*corev1.Pod)
			denied string
		}{
			"as given":          {func(*corev1.Pod) {}, ""},
			"less was observed": {func(p *corev1.Pod) { p.Annotations[api.AnnotationSummary] = "2Gi of NVIDIA T4, not enforced" }, ""},
			"a stronger tier": {func(p *corev1.Pod) { p.Annotations[api.AnnotationSummary] = "2Gi of NVIDIA T4, enforced by hardware" },
				"summary"},
			"a larger slice":     {func(p *corev1.Pod) { p.Annotations[api.AnnotationSummary] = "80Gi of NVIDIA T4, enforced by guard" }, "summary"},
			"no summary":         {func(p *corev1.Pod) { delete(p.Annotations, api.AnnotationSummary) }, "summary"},
			"another label":      {func(p *corev1.Pod) { p.Labels[api.LabelTier] = "hardware" }, "tier"},
			"no label":           {func(p *corev1.Pod) { p.Labels = nil }, ""},
			"both of other hand": {func(p *corev1.Pod) { p.Annotations[api.AnnotationSummary], p.Labels[api.LabelTier] = "x", "x" }, "summary"},
		} {
			in, _ := brought(t, "")
			d := policies.Decide(in)
			in.Pod = podedit.Apply(d.Promise, in.Pod)
			if diff := cmp.Diff([2]string{"2Gi of NVIDIA T4, enforced by guard", "guard"}, shown(in.Pod)); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			c.change(in.Pod)
			d = policies.Verify(in, d.Promise)
			if denied := d.Outcome == policies.Denied; denied != (c.denied != "") || !strings.Contains(d.Message(), c.denied) {
				t.Errorf("%s: %s %s, want %q", name, d.Outcome, d.Message(), c.denied)
			}
		}
	})
	t.Run("a pod without a slice shows none", func(t *testing.T) {
		t.Parallel()
		in, pod := brought(t, "")
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		pod.Labels = map[string]string{api.LabelTier: "hardware"}
		if d := policies.Verify(in, nil); d.Outcome != policies.Denied || !strings.Contains(d.Message(), "label "+api.LabelTier) {
			t.Errorf("%s %s", d.Outcome, d.Message())
		}
	})
	t.Run("a hostile pod of no map of annotations", func(t *testing.T) {
		t.Parallel()
		in, old := brought(t, "")
		old.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		old.Annotations = map[string]string{api.LabelTier: "x"}
		in.Pod = old.DeepCopy()
		in.Pod.Annotations, in.Pod.Labels = nil, map[string]string{api.LabelTier: "hardware", api.AnnotationSummary: "x"}
		if got := shown(updatedPod(t, in, old, "")); got[1] != "" {
			t.Errorf("%q", got)
		}
	})
	t.Run("an earlier build's slice has neither", func(t *testing.T) {
		t.Parallel()
		in, _ := brought(t, "")
		given := policies.Decide(in).Promise
		given.Slice = ""
		created := podedit.Apply(given, in.Pod)
		if got := shown(created); got != [2]string{} {
			t.Errorf("%q", got)
		}
		in.Pod = created
		if d := policies.Verify(in, given); d.Outcome == policies.Denied {
			t.Error(d.Message())
		}
		in.Pod = created.DeepCopy()
		in.Pod.Labels = map[string]string{api.LabelTier: "guard"} // a newer replica wrote them first, and the earlier one left them
		metav1.SetMetaDataAnnotation(&in.Pod.ObjectMeta, api.AnnotationSummary, "2Gi of NVIDIA T4, enforced by guard")
		if d := policies.Verify(in, given); d.Outcome == policies.Denied {
			t.Error(d.Message())
		}
		in.Pod.Labels = map[string]string{api.LabelTier: "hardware"}
		if d := policies.Verify(in, given); d.Outcome != policies.Denied {
			t.Error(d.Outcome)
		}
		if got := shown(updatedPod(t, in, created, "")); got != [2]string{} {
			t.Errorf("on a live pod %q", got)
		}
	})
}

func TestSummaryAfterImage(t *testing.T) {
	t.Parallel()
	in, pod := brought(t, "guard: {enabled: false}\n")
	pod.Spec.Containers[0].Image = "pytorch/pytorch:2.10.0-cuda12.8-cudnn9-runtime"
	old := rewritten(t, in)
	if diff := cmp.Diff([2]string{"2Gi of NVIDIA T4, enforced by framework", "framework"}, shown(old)); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	in.Pod = old.DeepCopy()
	in.Pod.Spec.Containers[0].Image = "example.test/app:1"
	after := updatedPod(t, in, old, "")
	if diff := cmp.Diff([2]string{"2Gi of NVIDIA T4, not enforced", "none"}, shown(after)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		denied bool
	}{
		"as written": {func(*corev1.Pod) {}, false},
		"an earlier build leaves both": {func(p *corev1.Pod) { p.Labels, p.Annotations[api.AnnotationSummary] = old.Labels, shown(old)[0] },
			false},
		"a label of another hand":            {func(p *corev1.Pod) { p.Labels[api.LabelTier] = "hardware" }, true},
		"a summary of another hand":          {func(p *corev1.Pod) { p.Annotations[api.AnnotationSummary] = "80Gi" }, true},
		"the label is removed":               {func(p *corev1.Pod) { delete(p.Labels, api.LabelTier) }, true},
		"the slice in the promise, unsigned": {func(p *corev1.Pod) { p.Annotations[api.AnnotationPromise] = "{}" }, true},
	} {
		in.Pod = after.DeepCopy()
		c.change(in.Pod)
		if found := verifyUpdate(t, in, old, ""); len(found) > 0 != c.denied {
			t.Errorf("%s: %v", name, found)
		}
	}
	in.Pod = after.DeepCopy()
	in.Pod.Spec.Containers[0].Image = old.Spec.Containers[0].Image
	if diff := cmp.Diff(shown(old), shown(updatedPod(t, in, after, ""))); diff != "" {
		t.Errorf("with the first image again (-want +got)\n%s", diff)
	}
}

// TestSummaryObserved changes an image that leaves the plan as it is, on a pod of which less was observed.
func TestSummaryObserved(t *testing.T) {
	t.Parallel()
	in, _ := brought(t, "")
	old := rewritten(t, in)
	given, err := promise.Decode(old.Annotations[api.AnnotationPromise])
	if err != nil {
		t.Fatal(err)
	}
	old.Annotations[api.AnnotationObserved] = `{"state":"degraded","tier":"none"}`
	old.Annotations[api.AnnotationSummary] = given.Summary(api.TierNone)
	in.Pod = old.DeepCopy()
	in.Pod.Spec.Containers[0].Image = "pytorch/pytorch:2.4.0-cuda12.4-cudnn9-devel"
	after := updatedPod(t, in, old, "")
	in.Pod = after
	if found := verifyUpdate(t, in, old, ""); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if diff := cmp.Diff([2]string{"2Gi of NVIDIA T4, not enforced", "guard"},
		shown(after)); after.Annotations[api.AnnotationPlanned] != old.Annotations[api.AnnotationPlanned] || diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

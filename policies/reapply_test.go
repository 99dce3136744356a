package policies_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
)

func TestReapply(t *testing.T) {
	t.Parallel()
	// Written over it whole (kubectl replace), or merged into it by names (kubectl apply).
	t.Run("a bare manifest over its live pod changes nothing", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			live := podedit.Apply(c.d.Promise, c.raw.Pod)
			for way, updated := range map[string]*corev1.Pod{"replaced": c.raw.Pod, "applied": applied(t, c.raw.Pod, live)} {
				after, violations := podedit.Restore(live, updated)
				if len(violations) > 0 {
					t.Errorf("%s, %s: %v", c.s.Name, way, violations)
				}
				if diff := cmp.Diff(treeOf(t, live), treeOf(t, after)); diff != "" {
					t.Errorf("%s, %s (-live +updated):\n%s", c.s.Name, way, diff)
				}
			}
		}
	})
	// While one build replaces the other, and after a rollback.
	t.Run("an update reverts nothing that a newer build gave", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			live := podedit.Apply(c.d.Promise, c.raw.Pod)
			newer := *c.d.Promise
			newer.Version = promise.Version + 1
			live.Annotations[api.AnnotationPromise] = newer.Encode()
			after, violations := podedit.Restore(live, c.raw.Pod)
			if diff := cmp.Diff(treeOf(t, live), treeOf(t, after)); diff != "" || len(violations) > 0 {
				t.Errorf("%s, replaced: %v (-live +updated)\n%s", c.s.Name, violations, diff)
			}
			larger := live.DeepCopy()
			larger.Labels = map[string]string{api.LabelMemory: "79Gi"}
			if _, violations := podedit.Restore(live, larger); len(violations) == 0 {
				t.Errorf("%s: its label changed", c.s.Name)
			}
		}
	})
	// Of a finalizer, a gate, a status, or nothing at all.
	t.Run("an update of something else changes nothing", func(t *testing.T) {
		t.Parallel()
		for _, c := range created(t) {
			if c.d.Outcome != policies.Mutated {
				continue
			}
			live := podedit.Apply(c.d.Promise, c.raw.Pod)
			after, violations := podedit.Restore(live, live)
			if diff := cmp.Diff(treeOf(t, live), treeOf(t, after)); diff != "" || len(violations) > 0 {
				t.Errorf("%s: %v\n%s", c.s.Name, violations, diff)
			}
		}
	})
}

// applied is live after the manifest that it was made from is applied once more by a client that merges lists by name.
func applied(t *testing.T, manifest, live *corev1.Pod) *corev1.Pod {
	t.Helper()
	meta, err := strategicpatch.NewPatchMetaFromStruct(corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	written, current := []byte(mustEncode(t, manifest)), []byte(mustEncode(t, live))
	patch, err := strategicpatch.CreateThreeWayMergePatch(written, written, current, meta, true)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, meta)
	if err != nil {
		t.Fatal(err)
	}
	var out corev1.Pod
	if err := json.Unmarshal(merged, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// treeOf is a pod as it goes over the wire: an empty list is none.
func treeOf(t *testing.T, pod *corev1.Pod) (tree map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(mustEncode(t, pod)), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

package pods

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
)

// live is a pod as it came out of its creation.
func live(t *testing.T) string {
	t.Helper()
	response, code := ask(t, governed(t, "strategies: [time-slicing]"), metrics.New("test"), call{object: asking("4Gi")})
	if code != http.StatusOK || len(response.Patch) == 0 {
		t.Fatalf("answered %d %+v", code, response)
	}
	return patched(t, asking("4Gi"), response)
}

func TestMutatorUpdate(t *testing.T) {
	t.Run("a bare manifest over a live pod changes nothing", func(t *testing.T) {
		t.Parallel()
		old := live(t)
		response, code := ask(t, governed(t, "strategies: [time-slicing]"), metrics.New("test"),
			call{operation: admissionv1.Update, object: asking("4Gi"), old: old})
		if code != http.StatusOK || !response.Allowed {
			t.Fatalf("answered %d %+v", code, response)
		}
		out := patched(t, asking("4Gi"), response)
		for _, text := range []string{`"nvidia.com/gpu.shared":"1"`, `"gpuslice.dev/promise"`} {
			if !strings.Contains(out, text) {
				t.Errorf("the pod lacks %s after the update:\n%s", text, out)
			}
		}
		if got := response.AuditAnnotations["outcome"]; got != string(policies.Mutated) {
			t.Errorf("outcome %q", got)
		}
		same, _ := ask(t, governed(t, ""), metrics.New("test"), call{operation: admissionv1.Update, object: old, old: old})
		if !same.Allowed || len(same.Patch) > 0 {
			t.Errorf("an update that changes nothing of ours is patched: %s", same.Patch)
		}
	})
}

func TestMutatorUpdateLabels(t *testing.T) {
	t.Parallel()
	old := live(t)
	changed := strings.Replace(old, `"gpuslice.dev/memory":"4Gi"`, `"gpuslice.dev/memory":"5Gi"`, 1)
	for name, tt := range map[string]struct {
		source  Source
		object  string
		allowed bool
		warned  bool
	}{
		"under enforce it is denied":          {governed(t, ""), changed, false, false},
		"under warn it passes with a warning": {governed(t, "enforcementMode: warn"), changed, true, true},
		"under audit it passes":               {governed(t, "enforcementMode: audit"), changed, true, false},
		"where the policy is gone it passes":  {fixed{}, changed, true, false},
		"a pod that is being deleted is never stopped": {governed(t, ""),
			strings.Replace(changed, `"generateName"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","generateName"`, 1), true, false},
		"a costly pod that is there is never stopped": {governed(t, ""),
			strings.Replace(changed, `"limits":{`, `"limits":{"x.com/y":"1e10000000",`, 1), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.object == old {
				t.Fatal("the case changes nothing")
			}
			response, code := ask(t, tt.source, metrics.New("test"), call{operation: admissionv1.Update, object: tt.object, old: old})
			if code != http.StatusOK || response.Allowed != tt.allowed || len(response.Warnings) > 0 != tt.warned || len(response.Patch) > 0 {
				t.Errorf("answered %d %+v", code, response)
			}
		})
	}
}

func TestMutatorUpdateRestores(t *testing.T) {
	t.Parallel()
	old := live(t)
	bare := strings.Replace(asking("4Gi"), `"4Gi"`, `"5Gi"`, 1)
	for name, source := range map[string]Source{"under warn": governed(t, "enforcementMode: warn"), "where the policy is gone": fixed{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, code := ask(t, source, metrics.New("test"), call{operation: admissionv1.Update, object: bare, old: old})
			if code != http.StatusOK || !response.Allowed {
				t.Fatalf("answered %d %+v", code, response)
			}
			if out := patched(t, bare, response); !strings.Contains(out, `"gpuslice.dev/promise"`) {
				t.Errorf("the promise is gone:\n%s", out)
			}
		})
	}
}

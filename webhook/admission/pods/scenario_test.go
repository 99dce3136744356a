package pods

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/test/scenarios"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// TestScenariosOverHTTP sends every golden case through the endpoint: what the core decides must arrive as a patch, a
// denial or nothing.
func TestScenariosOverHTTP(t *testing.T) {
	t.Parallel()
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			c := call{object: string(s.Pod), namespace: s.Namespace.Name}
			if s.Old != nil {
				c.operation, c.old = admissionv1.Update, string(s.Old)
			}
			response, code := ask(t, scenarioSource(s), metrics.New("test"), c)
			if code != http.StatusOK {
				t.Fatalf("answered %d", code)
			}
			outcome, denials := verdict(s.Want["verdict"])
			if got := response.AuditAnnotations["outcome"] + ": " + response.AuditAnnotations["reason"]; s.Old == nil && got != outcome {
				t.Errorf("outcome is %q, want %q", got, outcome)
			}
			if strings.HasPrefix(outcome, string(policies.Denied)) {
				if want := shorten.Line(strings.Join(denials, "; "), review.MaxMessage); response.Allowed || response.Result.Message != want {
					t.Errorf("allowed %v, message\n%s\nwant\n%s", response.Allowed, response.Result.Message, want)
				}
				if err := s.CheckCauses(response.Result.Details); err != nil {
					t.Error(err)
				}
				return
			}
			if !response.Allowed {
				t.Fatalf("denied: %s", response.Result.Message)
			}
			if want, ok := s.Want["pod.diff"]; ok {
				comparePod(t, want, s.Pod, patched(t, string(s.Pod), response))
			} else if len(response.Patch) > 0 {
				t.Errorf("patched: %s", response.Patch)
			}
		})
	}
}

// scenarioSource knows a case's policy, nodes and namespace.
func scenarioSource(s scenarios.Scenario) fixed { return fixed{in: s.Governed()} }

// verdict reads a want/verdict section: its first line, and the denials.
func verdict(text string) (outcome string, denials []string) {
	outcome, _, _ = strings.Cut(text, "\n")
	for line := range strings.Lines(text) {
		if denial, ok := strings.CutPrefix(line, "denial: "); ok {
			denials = append(denials, strings.TrimSuffix(denial, "\n"))
		}
	}
	return outcome, denials
}

// comparePod compares what became of a pod with a want/pod.diff section.
func comparePod(t *testing.T, want string, pod []byte, object string) {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(object), &tree); err != nil {
		t.Fatal(err)
	}
	got, err := scenarios.PodDiff(pod, tree)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("what becomes of the pod is\n%s\nwant\n%s", got, want)
	}
}

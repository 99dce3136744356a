package policies_test

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

var update = flag.Bool("update", false, "rewrite the want sections of the scenarios")

func allScenarios(t *testing.T) []scenarios.Scenario {
	t.Helper()
	if otherScenarios != nil {
		return otherScenarios
	}
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// otherScenarios take the place of those that are written; nil: none do.
var otherScenarios []scenarios.Scenario

// outcome is what the core makes of a scenario, as its want sections say it.
func outcome(t *testing.T, s scenarios.Scenario) map[string]string {
	t.Helper()
	raw, violation, err := rawpod.Decode(s.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if violation != nil {
		return map[string]string{"verdict": "denied: " + string(violation.Rule) + "\ndenial: " + violation.String() + "\n"}
	}
	if s.Old != nil {
		return updated(t, s)
	}
	in, err := s.Input()
	if err != nil {
		t.Fatal(err)
	}
	d, patch := policies.Create(in, raw, promise.Keys{})
	want := map[string]string{"verdict": scenarios.Verdict(d)}
	if d.Outcome == policies.Mutated || d.Outcome == policies.DevicesHidden || len(patch) > 0 {
		want["pod.diff"] = podDiff(t, s.Pod, patch)
	}
	if d.Outcome != policies.Mutated {
		return want
	}
	planned, err := yaml.Marshal(d.Planned)
	if err != nil {
		t.Fatal(err)
	}
	want["planned.yaml"] = string(planned)
	if strings.HasPrefix(s.Name, "guard-") && d.Promise.Guard != nil {
		guard, err := yaml.Marshal(d.Promise.Guard)
		if err != nil {
			t.Fatal(err)
		}
		want["guard.yaml"] = string(guard)
	}
	return want
}

// updated is what the core makes of a scenario's update, whatever it finds.
func updated(t *testing.T, s scenarios.Scenario) map[string]string {
	t.Helper()
	d, patch, err := policies.Change{Old: s.Old, New: s.Pod}.Mutate(func() (policies.Input, error) { return s.Governed(), nil })
	switch {
	case err != nil:
		t.Fatal(err)
	case d.Outcome == policies.Denied:
		return map[string]string{"verdict": scenarios.Verdict(d)}
	}
	return map[string]string{"verdict": "restored\n", "pod.diff": podDiff(t, s.Pod, patch)}
}

// podDiff applies operations to the raw pod, as the API server does, and shows what they change.
func podDiff(t *testing.T, pod []byte, ops any) string {
	t.Helper()
	text, err := scenarios.PodDiff(pod, patched(t, pod, ops))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func patched(t *testing.T, pod []byte, ops any) map[string]any {
	t.Helper()
	text, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := patch.Apply(pod)
	if err != nil {
		t.Fatalf("the patch does not apply: %v\n%s", err, text)
	}
	var tree map[string]any
	if err := json.Unmarshal(out, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestEveryScenario(t *testing.T) {
	abuse.Report(t, abuse.Attempt{Threat: "A13", Attack: "mirror pod of a static pod", Outcome: abuse.Reported,
		Words: "static pods pass no admission; the mirror pod is unchanged"})
	for _, s := range allScenarios(t) {
		t.Run(s.Name, func(t *testing.T) {
			got := outcome(t, s)
			if *update {
				if err := os.WriteFile("../test/scenarios/cases/"+s.Name+".txtar", s.Archive(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(s.Want, got); diff != "" {
				t.Errorf("%s (-want +got, go test ./policies -update rewrites what is wanted):\n%s", s.Comment, diff)
			}
		})
	}
}

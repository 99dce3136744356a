package policies_test

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
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

// fieldsOf adds the fields of the denials, where the case shows them.
func fieldsOf(s scenarios.Scenario, found []api.Violation, want map[string]string) map[string]string {
	if _, shown := s.Want["fields"]; shown {
		fields := make([]string, len(found))
		for i, v := range found {
			fields[i] = v.Field
		}
		want["fields"] = scenarios.Lines(fields)
	}
	return want
}

// outcome is what the core makes of a scenario, as its want sections say it.
func outcome(t *testing.T, s scenarios.Scenario) map[string]string {
	t.Helper()
	raw, violation, err := rawpod.Decode(s.Pod)
	if err != nil {
		t.Fatal(err)
	}
	if violation != nil {
		return fieldsOf(s, []api.Violation{*violation},
			map[string]string{"verdict": "denied: " + string(violation.Rule) + "\ndenial: " + violation.String() + "\n"})
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
		return fieldsOf(s, d.Violations, want)
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
		return fieldsOf(s, d.Violations, map[string]string{"verdict": scenarios.Verdict(d)})
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

// withoutField are the reasons of denials whose fault lies in no field of the pod.
var withoutField = []string{"the namespace's policy cannot be read"}

func TestDenialsNameTheField(t *testing.T) {
	t.Parallel()
	var denied int
	for _, s := range allScenarios(t) {
		for _, v := range violationsOf(t, s) {
			denied++
			if slices.Contains(withoutField, v.Reason) {
				if v.Field != "" {
					t.Errorf("%s: %q names the field %q, and no author can change that", s.Name, v, v.Field)
				}
				continue
			}
			if err := s.CheckField(v.Field); err != nil || v.Field == "" {
				t.Errorf("%s: %q names the field %q: %v", s.Name, v, v.Field, err)
			}
		}
	}
	if denied < 100 {
		t.Errorf("%d denials were looked at, which is not all of the scenarios'", denied)
	}
}

// violationsOf are a scenario's violations, whatever becomes of them.
func violationsOf(t *testing.T, s scenarios.Scenario) []api.Violation {
	t.Helper()
	raw, violation, err := rawpod.Decode(s.Pod)
	switch {
	case err != nil:
		t.Fatal(err)
	case violation != nil:
		return []api.Violation{*violation}
	}
	if s.Old != nil {
		d, _, err := policies.Change{Old: s.Old, New: s.Pod}.Mutate(func() (policies.Input, error) { return s.Governed(), nil })
		if err != nil {
			t.Fatal(err)
		}
		return d.Violations
	}
	in := s.Governed()
	in.Pod = raw.Pod
	return policies.Decide(in).Violations
}

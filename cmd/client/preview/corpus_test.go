package preview

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/client/clusters"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/corpus"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// everyKindOfNode names the node files of the scenarios that stand for a cluster with everything in it.
func everyKindOfNode() []string {
	return []string{"a10-timeslicing", "a100-mig-mixed", "a100-plain", "h100-mps-plugin",
		"h200-driver-limits", "l4-timeslicing-renamed", "t4-plain-old-driver"}
}

// TestEvaluatePublicPods: pods that others wrote end in an answer, never in an error, and the answer to what comes
// out is that nothing is to be changed.
func TestEvaluatePublicPods(t *testing.T) {
	pods, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []struct {
		name, text string
		rewritten  bool // at least one pod must be, else the test sees nothing
	}{
		{"opt-in", "apiVersion: gpuslice.dev/v1\n", false},
		{"opt-in with fractions", "apiVersion: gpuslice.dev/v1\naccept: [fractional-quantity]\n", false},
		{"transparent", "apiVersion: gpuslice.dev/v1\nmode: transparent\ndefaultSlice: {memory: 4Gi}\n", true},
		{"transparent, any replica",
			"apiVersion: gpuslice.dev/v1\nmode: transparent\nstrategies: [time-slicing, mps]\ndefaultSlice: {class: replica}\n", true},
	} {
		t.Run(policy.name, func(t *testing.T) {
			t.Parallel()
			e := engineFor(t, policy.text)
			seen := map[policies.Outcome]int{}
			for _, pod := range pods {
				seen[comesThrough(t, e, pod)]++
			}
			t.Logf("outcomes: %v", seen)
			if policy.rewritten && seen[policies.Mutated] == 0 {
				t.Error("no pod was rewritten")
			}
		})
	}
}

// comesThrough evaluates one pod, and what comes out of it once more.
func comesThrough(t *testing.T, e *Engine, pod corpus.Pod) policies.Outcome {
	t.Helper()
	r := manifest.Reader{Stdin: bytes.NewReader(pod.YAML)}
	documents := r.Documents([]string{manifest.StdinPath}, manifest.MaxManifest)
	if len(documents) != 1 {
		t.Fatalf("%s holds %d documents", pod.Name, len(documents))
	}
	objects, unread := documents[0].Objects()
	if len(unread) > 0 || len(objects) != 1 {
		t.Fatalf("%s cannot be read: %v", pod.Name, unread)
	}
	first, err := evaluateOne(t, e, objects[0])
	if err != nil {
		t.Errorf("%s: %v", pod.Name, err)
		return ""
	}
	if o := first.Decision.Outcome; o != policies.Mutated && o != policies.DevicesHidden {
		if first.After != nil && !bytes.Equal(first.After, objects[0].Raw) {
			t.Errorf("%s: %s, and yet it comes out different", pod.Name, first.Decision.Outcome)
		}
		return first.Decision.Outcome
	}
	again := objects[0]
	again.Raw = first.After
	second, err := evaluateOne(t, e, again)
	if err != nil {
		t.Errorf("%s: what comes out cannot be judged: %v", pod.Name, err)
		return ""
	}
	if diff := cmp.Diff(string(first.After), string(second.After)); diff != "" {
		t.Errorf("%s: what comes out is changed again (-first +second):\n%s", pod.Name, diff)
	}
	return first.Decision.Outcome
}

// evaluateOne evaluates an object with one pod.
func evaluateOne(t *testing.T, e *Engine, o manifest.Object) (Result, error) {
	t.Helper()
	all, err := e.Evaluate(t.Context(), o)
	if err != nil || len(all) != 1 {
		return Result{}, err
	}
	return all[0], nil
}

// engineFor is an engine for a cluster with every kind of node, under one default policy.
func engineFor(t *testing.T, policy string) *Engine {
	t.Helper()
	parsed, problems := config.Parse("gpuslice-system/default", []byte(policy))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	nodes, err := scenarios.Nodes(everyKindOfNode()...)
	if err != nil {
		t.Fatal(err)
	}
	return New(&clusters.Cluster{Book: config.NewBook([]*config.Policy{parsed}),
		Pools: pools.FromNodes(nodes, parsed.Pools, nil), Guard: scenarios.Guard()})
}

package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// TestPagePods decides the pods of pages: a block "text tried on NODES" is what becomes of the last pod
// above it, under the last policy above it, on those nodes of test/scenarios (see scenarios.Tried). "..." at the end of a line stands for
// its rest.
func TestPagePods(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, p := range pages(t) {
		var policy, pod string
		for _, b := range p.Blocks() {
			for _, document := range documents(t, b) {
				switch {
				case strings.Contains(document, "apiVersion: "+config.APIVersion+"\n"):
					policy = document
				case strings.Contains(document, "kind: Pod\n"):
					pod = document
				}
			}
			nodes, ok := strings.CutPrefix(b.Info, "text tried on ")
			if !ok {
				continue
			}
			tried++
			got, err := outcome(policy, pod, nodes)
			if err != nil {
				t.Errorf("%s: %v", b.Where(), err)
			} else if diff := cmp.Diff(b.Text, b.Elide(got)); diff != "" {
				t.Errorf("%s (-page +what comes out):\n%s", b.Where(), diff)
			}
		}
	}
	if tried == 0 {
		t.Error("no page tries anything")
	}
}

// outcome is what becomes of a pod, as pages say it.
func outcome(policy, pod, nodes string) (string, error) {
	parsed, problems := config.Parse("gpuslice-system/default", []byte(policy))
	if len(problems) > 0 {
		return "", problems.ToAggregate()
	}
	source, err := scenarios.Tried(nodes)
	if err != nil {
		return "", err
	}
	text, err := yaml.YAMLToJSON([]byte(pod))
	if err != nil {
		return "", err
	}
	raw, violation, err := rawpod.Decode(text)
	if err != nil || violation != nil {
		return "", fmt.Errorf("%v %v", err, violation)
	}
	d := policies.Decide(policies.Input{
		Namespace: api.Namespace{Name: "team-a"}, Policy: parsed, Pod: raw.Pod, Guard: scenarios.Guard(),
		Pools: source.Pools(parsed.Pools, nil), PoolsComplete: parsed.Pools.Complete,
	})
	return scenarios.Told(d), nil
}

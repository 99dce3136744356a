package policies_test

import (
	"testing"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

func TestExplain(t *testing.T) {
	// "none" for a pool under MPS would talk people out of it.
	t.Run("candidates behind the chosen one have their tier", func(t *testing.T) {
		nodes, err := scenarios.Nodes("a100-mig-mixed", "h100-mps-plugin")
		if err != nil {
			t.Fatal(err)
		}
		policy, problems := config.Parse("gpuslice-system/default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [mig, mps]\n"))
		if len(problems) > 0 {
			t.Fatal(problems.ToAggregate())
		}
		raw, violation, err := rawpod.Decode([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"gpuslice.dev/memory":"4Gi"}},
		"spec":{"containers":[{"name":"c","image":"x","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`))
		if err != nil || violation != nil {
			t.Fatal(err, violation)
		}
		in := policies.Input{Pod: raw.Pod, Namespace: api.Namespace{Name: "team-a"},
			Policy: policy, Pools: pools.FromNodes(nodes, policy.Pools, nil)}
		plain := policies.Decide(in)
		in.Explain = true
		d := policies.Decide(in)
		if d.Promise == nil || plain.Promise == nil || d.Promise.Encode() != plain.Promise.Encode() {
			t.Fatalf("explaining changes the decision: %+v, without: %+v", d, plain)
		}
		tiers := map[api.StrategyName]api.Tier{}
		for _, c := range d.Candidates {
			if c.Tier != "" {
				tiers[c.Strategy] = c.Tier
			}
		}
		if tiers["mig"] != api.TierHardware || tiers["mps"] != api.TierMPS {
			t.Errorf("tiers of the candidates: %v", tiers)
		}
	})
}

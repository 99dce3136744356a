package policies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

func TestRememberedPool(t *testing.T) {
	gone, err := scenarios.Nodes("l4-timeslicing-renamed")
	if err != nil {
		t.Fatal(err)
	}
	there, err := scenarios.Nodes("a100-mig-mixed")
	if err != nil {
		t.Fatal(err)
	}
	policy, problems := config.Parse("gpuslice-system/default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, mig]\n"))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	decide := func(t *testing.T, known []pools.Pool, memory string) *policies.Decision {
		t.Helper()
		raw, violation, err := rawpod.Decode([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"gpuslice.dev/memory":"` + memory + `"}},
			"spec":{"containers":[{"name":"c","image":"x","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`))
		if err != nil || violation != nil {
			t.Fatal(err, violation)
		}
		d := policies.Decide(policies.Input{Pod: raw.Pod, Namespace: api.Namespace{Name: "team-a"}, Policy: policy, Pools: known})
		return &d
	}
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	before := pools.FromNodes(gone, policy.Pools, nil)
	alone := pools.Source{}.Remember(policy.Pools, pools.Known{Before: before, Now: now})
	beside := pools.Source{Nodes: there}.Remember(policy.Pools, pools.Known{Before: before, Now: now})
	t.Run("is used where no pool with nodes fits, with a warning to the pod's author", func(t *testing.T) {
		d := decide(t, alone, "4Gi")
		if d.Promise == nil || d.Promise.Planned.Strategy != "time-slicing" {
			t.Fatalf("the pod has no slice of the pool: %+v", d.Violations)
		}
		if text := strings.Join(d.Warnings, "\n"); !strings.Contains(text, "no node has offered it since 2026-11-22T08:00:00Z") {
			t.Errorf("no warning tells of the missing node: %q", text)
		}
	})
	t.Run("comes after a pool with nodes of a strategy that policy likes less", func(t *testing.T) {
		d := decide(t, beside, "4Gi")
		if d.Promise == nil || d.Promise.Planned.Strategy != "mig" {
			t.Fatalf("the pod did not get the live pool: %+v", d)
		}
		if len(d.Warnings) > 0 && strings.Contains(strings.Join(d.Warnings, "\n"), "no node has offered") {
			t.Errorf("a warning about a pool that was not chosen: %q", d.Warnings)
		}
	})
}

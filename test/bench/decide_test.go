package bench

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// typical is a decision as it happens most: a PyTorch pod with one label, four pools, a guard.
func typical() (policies.Input, error) {
	policy, problems := config.Parse("gpuslice-system/default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, mps, mig]\n"))
	if len(problems) > 0 {
		return policies.Input{}, problems.ToAggregate()
	}
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed", "a100-mig-mixed", "h100-mps-plugin", "t4-plain-old-driver")
	if err != nil {
		return policies.Input{}, err
	}
	var pod corev1.Pod
	if err := json.Unmarshal([]byte(typicalPod), &pod); err != nil {
		return policies.Input{}, err
	}
	return policies.Input{Pod: &pod, Namespace: api.Namespace{Name: "team-a"}, Policy: policy,
		Pools: pools.FromNodes(nodes, policy.Pools, nil), Guard: scenarios.Guard()}, nil
}

const typicalPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","labels":{"app":"train","gpuslice.dev/memory":"4Gi"}},"spec":{"containers":[
		{"name":"trainer","image":"pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime","env":[{"name":"A","value":"b"}],"resources":{"limits":{"nvidia.com/gpu":"1","cpu":"4","memory":"16Gi"}}}]}}`

func BenchmarkPlanAndApply(b *testing.B) {
	in := mustTypical(b)
	b.ReportAllocs()
	for b.Loop() {
		d := policies.Decide(in)
		if d.Outcome != policies.Mutated {
			b.Fatal(d.Message())
		}
		podedit.Apply(d.Promise, in.Pod)
	}
}

func BenchmarkPlanAndApplyWithoutGuard(b *testing.B) {
	in := mustTypical(b)
	in.Guard = nil
	b.ReportAllocs()
	for b.Loop() {
		d := policies.Decide(in)
		podedit.Apply(d.Promise, in.Pod)
	}
}

func BenchmarkDecodeDecideApplyPatch(b *testing.B) {
	in, raw := mustTypical(b), []byte(typicalPod)
	b.ReportAllocs()
	for b.Loop() {
		pod, _, err := rawpod.Decode(raw)
		if err != nil {
			b.Fatal(err)
		}
		policies.Create(in, pod, promise.Keys{})
	}
}

func mustTypical(b *testing.B) policies.Input {
	b.Helper()
	in, err := typical()
	if err != nil {
		b.Fatal(err)
	}
	return in
}

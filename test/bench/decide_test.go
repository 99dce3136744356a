package bench

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// typical is a decision as it happens most: a PyTorch pod with one label, four pools, a guard.
func typical(b *testing.B) (policies.Input, []byte) {
	b.Helper()
	policy, problems := policies.ParsePolicy("gpuslice-system/default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, mps, mig]\n"))
	if len(problems) > 0 {
		b.Fatal(problems.ToAggregate())
	}
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed", "a100-mig-mixed", "h100-mps-plugin", "t4-plain-old-driver")
	if err != nil {
		b.Fatal(err)
	}
	raw := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","labels":{"app":"train","gpuslice.dev/memory":"4Gi"}},"spec":{"containers":[
		{"name":"trainer","image":"pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime","env":[{"name":"A","value":"b"}],"resources":{"limits":{"nvidia.com/gpu":"1","cpu":"4","memory":"16Gi"}}}]}}`)
	var pod corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		b.Fatal(err)
	}
	return policies.Input{Pod: &pod, Namespace: policies.Namespace{Name: "team-a"}, Policy: policy,
		Pools: policies.PoolsFromNodes(nodes, policy.Pools, nil), Guard: &policies.GuardSettings{Image: "gpuslice/guard:v0.1.0"}}, raw
}

func BenchmarkPlanAndApply(b *testing.B) {
	in, _ := typical(b)
	b.ReportAllocs()
	for b.Loop() {
		d := policies.Decide(in)
		if d.Outcome != policies.Rewritten {
			b.Fatal(d.Message())
		}
		policies.Apply(in.Pod, d.Promise)
	}
}

func BenchmarkPlanAndApplyWithoutGuard(b *testing.B) {
	in, _ := typical(b)
	in.Guard = nil
	b.ReportAllocs()
	for b.Loop() {
		d := policies.Decide(in)
		policies.Apply(in.Pod, d.Promise)
	}
}

func BenchmarkDecodeDecideApplyPatch(b *testing.B) {
	in, raw := typical(b)
	b.ReportAllocs()
	for b.Loop() {
		pod, _, err := policies.DecodePod(raw)
		if err != nil {
			b.Fatal(err)
		}
		in.Pod = pod.Pod
		d := policies.Decide(in)
		policies.Patch(pod.Tree, pod.Pod, policies.Apply(pod.Pod, d.Promise))
	}
}

package plan

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// newFixture is a pod that requests 3Gi, beside two pools that would give it the very same and one of whole GPUs.
func newFixture(t *testing.T) (*Input, api.Request) {
	t.Helper()
	policy, problems := config.Parse("team", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, exclusive]\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	shared := func(name string, replicas int) pools.Pool {
		return pools.Pool{Name: name, Site: name, Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing", DeviceMemory: 24576, Replicas: replicas}
	}
	in := &Input{
		Pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}, Policy: policy,
		Pools: []pools.Pool{shared("four", 4), shared("six", 6), {Name: "whole", Site: "whole", Resource: api.ResourceGPU, Strategy: "exclusive", DeviceMemory: 24576, Replicas: 1}},
	}
	return in, api.Request{Containers: []api.ContainerRequest{{Name: "main", GPUs: 1, Size: api.Size{Memory: 3072}}}}
}

// TestCandidatesAreValues has every step that compares candidates leave them as they were placed.
func TestCandidatesAreValues(t *testing.T) {
	t.Parallel()
	in, req := newFixture(t)
	wants, violations := resolveAll(in, req)
	fitting, unfit := candidates(in, req, wants)
	if len(violations) > 0 || len(fitting) != 3 {
		t.Fatalf("%d candidates: %v %v", len(fitting), violations, unfit)
	}
	before := slices.Clone(fitting)
	for i := range before {
		before[i].containers = slices.Clone(fitting[i].containers)
	}
	chosen, _ := choose(in, req, fitting)
	counted, same := equivalent(in, chosen, fitting)
	report(evaluateAll(in, req, fitting), unfit, chosen)
	if !reflect.DeepEqual(fitting, before) {
		t.Errorf("placed %+v\nthen   %+v", before, fitting)
	}
	if chosen.pool().Name != "six" || len(same) != 1 || same[0].pool().Name != "four" {
		t.Fatalf("chosen %s, and %d more", chosen.pool().Name, len(same))
	}
	sixth, quarter := quantity.Device/6, quantity.Device/4
	if chosen.containers[0].share != sixth || counted.containers[0].share != quarter || same[0].containers[0].share != quarter {
		t.Errorf("chosen has %s of a device, counts for %s, and the other has %s", chosen.containers[0].share, counted.containers[0].share, same[0].containers[0].share)
	}
}

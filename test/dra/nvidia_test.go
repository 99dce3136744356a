package dra

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

// h100 is what the driver finds.
var h100 = fakegpu.Config{Devices: 1, Name: "NVIDIA H100 80GB HBM3", ComputeCapability: "9.0",
	Fault: fakegpu.Fault{Memory: 81559 * fakegpu.MiB}}

// byNVIDIA is a policy of claims alone.
const byNVIDIA = `apiVersion: gpuslice.dev/v1
strategies: [claim]
minimumEnforcement: guard
guard: {act: always, grace: 1s, termGrace: 2s}
`

// shared are the flags by which the driver shares devices out.
func shared(how string) []string {
	return []string{"--feature-gates=ConsumableShares=true", "--consumable-shares=" + how}
}

// TestNVIDIADriver is about slices by claim with NVIDIA's own driver.
func TestNVIDIADriver(t *testing.T) {
	if !cluster.Wanted("node") || !cluster.Wanted("matrix") {
		t.Skip("compiles NVIDIA's driver and starts a real node: run make test-matrix, as root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	n, err := install.StartNVIDIADRANode(ctx, box.Dir(), []byte(classes), h100)
	if err != nil {
		t.Fatal(err)
	}
	s := stage{n, ctx}
	s.publishes(t, "nvidia-h100")
	for _, how := range []string{"4", "unlimited", "memory"} {
		if err := n.RestartNVIDIADRA(h100, shared(how)...); err != nil {
			t.Fatal(err)
		}
		s.publishes(t, "nvidia-h100-shares-"+how)
	}
	if err := n.Policy(ctx, "default", []byte(byNVIDIA)); err != nil {
		t.Fatal(err)
	}
	if err := n.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"team-b", "team-c"} {
		if err := n.GPU(namespace, h100); err != nil {
			t.Fatal(err)
		}
		if err := n.Namespace(ctx, namespace, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("slices_of_unequal_sizes_fill_a_device", s.fill)
	if err := n.RestartNVIDIADRA(h100, shared("memory")...); err != nil {
		t.Fatal(err)
	}
	t.Run("the_guard_terminates_a_hog_after_the_driver_was_restarted", s.hogByClaim("of-4gi", "of-8gi", "fourth"))
}

// publishes holds what the driver publishes against the document of that name, from which scenarios read it.
func (s stage) publishes(t *testing.T, document string) {
	t.Helper()
	text, err := os.ReadFile("../scenarios/slices/" + document + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	var want resourcev1.ResourceSlice
	if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), &want); err != nil {
		t.Fatal(err)
	}
	diff := ""
	err = wait.PollUntilContextTimeout(s.ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		got, err := s.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.driver=gpu.nvidia.com"})
		if err != nil || len(got.Items) != 1 || len(got.Items[0].Spec.Devices) != 1 {
			return false, err
		}
		diff = cmp.Diff(inGeneral(want.Spec.Devices[0]), inGeneral(got.Items[0].Spec.Devices[0]))
		return diff == "", nil
	})
	if err != nil {
		t.Fatalf("%v; what the driver publishes is not what %s has (-document +driver):\n%s", err, document, diff)
	}
}

// inGeneral is a device without what is of one card and machine.
func inGeneral(d resourcev1.Device) resourcev1.Device {
	for name := range d.Attributes {
		if name == "uuid" || strings.HasPrefix(string(name), "resource.kubernetes.io/") {
			delete(d.Attributes, name)
		}
	}
	return d
}

func (s stage) fill(t *testing.T) {
	for _, memory := range []string{"4Gi", "8Gi", "60Gi"} {
		name := "of-" + strings.ToLower(memory)
		made := s.create(t, "team-c", byLabel(name, memory, "device 0", "hold 1GiB"))
		given, err := promise.Decode(made.Annotations[api.AnnotationPromise])
		if err != nil {
			t.Fatal(err)
		}
		if given.Strategy != "claim" || given.Planned.Tier != api.TierGuard {
			t.Errorf("%s: planned %s by %s", name, given.Planned.Tier, given.Strategy)
		}
		s.await(t, "team-c", name, running)
		if got := s.allocated(t, "team-c", name); got != "gpu-0" {
			t.Errorf("%s is on device %q", name, got)
		}
	}
	s.create(t, "team-c", byLabel("fourth", "20Gi", "device 0", "hold 1GiB"))
	s.await(t, "team-c", "fourth", func(p *corev1.Pod) bool { return strings.Contains(p.Status.String(), "cannot allocate all claims") })
	s.delete(t, "team-c", "of-60gi")
	s.await(t, "team-c", "fourth", running)
}

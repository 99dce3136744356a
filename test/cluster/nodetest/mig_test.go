package nodetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// migMinors is what the driver says of a card with room for 14 GPU instances, one compute instance in each.
func migMinors() string {
	var text strings.Builder
	for i := range 14 {
		fmt.Fprintf(&text, "gpu0/gi%d/access %d\ngpu0/gi%d/ci0/access %d\n", i, 30+9*i, i, 31+9*i)
	}
	return text.String()
}

func TestPluginMIG(t *testing.T) {
	t.Run("offers instances", func(t *testing.T) {
		n := node(t)
		const name = "nvidia.com/mig-1g.10gb"
		gpu := fakegpu.Config{Fault: fakegpu.Fault{MIG: slices.Repeat([]string{"1g.10gb"}, 7)}}
		o := cluster.NVIDIA{Config: "version: v1\nflags: {migStrategy: mixed}\n", Env: []string{fakegpu.ConfigVariable + "=" + gpu.String()}}
		p, err := n.StartNVIDIAPlugin(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		if err := n.AwaitAllocatable(t.Context(), name, 7); err != nil {
			t.Fatal(err)
		}
		create(t, n, "mig", corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{asking(container("main", "echo $NVIDIA_VISIBLE_DEVICES"), name)},
		})
		awaitPhase(t, n, "mig", corev1.PodSucceeded)
		if out, err := n.Kubectl(t.Context(), "logs", "mig"); err != nil || !strings.HasPrefix(out, "MIG-") {
			t.Errorf("the pod was given %q (%v), want a MIG instance", out, err)
		}
		labels, err := n.DiscoverFeatures(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := labels[name+".count"]; got != "7" {
			t.Errorf("label %s.count is %q, want 7", name, got)
		}
	})
}

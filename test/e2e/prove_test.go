package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// TestVerifyOnGPU goes past slices on the node, under drivers that hold, leak and lie.
func TestVerifyOnGPU(t *testing.T) {
	t.Parallel()
	limited := fakegpu.Fault{CUDALimit: 2 * fakegpu.GiB, CUDALimitOf: "pod", Limits: true}
	t.Run("a driver that lies, and one that leaks", func(t *testing.T) {
		t.Run("lies", func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "", fakegpu.Config{Devices: devices, Fault: fakegpu.Fault{Figures: "zero"}})
			s.command(3, []string{"verify", "--on-gpu", "-n", s.namespace, "--watch", "8s"},
				"guard is planned, and does not hold all that it promises",
				"cuMemAlloc: nothing (held more than the slice for 8s)", "many-processes: nothing")
		})
		t.Run("leaks", func(t *testing.T) {
			t.Parallel()
			leaking := limited
			leaking.CUDALeaks, leaking.Figures = []string{"cuMemCreate"}, "zero"
			s := newStage(t, "", fakegpu.Config{Devices: devices, Fault: leaking})
			s.command(3, []string{"verify", "--on-gpu", "-n", s.namespace, "--watch", "8s"},
				"guard is planned, and does not hold all that it promises",
				"cuMemAlloc: unknown (out of memory", "cuMemCreate: nothing (held more than")
		})
	})
	t.Run("a guard that holds is proven", func(t *testing.T) {
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.command(0, []string{"verify", "--on-gpu", "-n", s.namespace, "--watch", "20s"},
			"guard is planned, and proven", "cuMemAlloc: guard after ", "cuMemCreate: guard after ", "many-processes: guard after ",
			"cuMemAllocManaged: nothing")
		if left, err := s.node.Client.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
			t.Errorf("%d pods are left, %v", len(left.Items), err)
		}
	})
}

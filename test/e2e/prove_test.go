package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/webhook/proofs"
)

// TestVerifyOnGPU goes past slices on the node, under drivers that hold, leak and lie. Its parts share the record of one pool.
func TestVerifyOnGPU(t *testing.T) {
	t.Parallel()
	demanding := newStage(t, "proven", fakegpu.Config{Devices: devices})
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
	demanding.awaitProof(false)
	t.Run("a guard that holds is proven", func(t *testing.T) {
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.command(0, []string{"verify", "--on-gpu", "-n", s.namespace, "--watch", "20s"},
			"guard is planned, and proven", "cuMemAlloc: guard after ", "cuMemCreate: guard after ", "many-processes: guard after ",
			"cuMemAllocManaged: nothing")
		if left, err := s.node.Client.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
			t.Errorf("%d pods are left, %v", len(left.Items), err)
		}
		demanding.awaitProof(true)
		s.create(slice("2Gi", "trainer", sliced("trainer", "hold 1GiB")))
		s.command(0, []string{"explain", "trainer", "-n", s.namespace},
			"planned", "proven", "guard (", "driver 580.95.05); nothing held cuMemAllocManaged")
	})
	t.Run("of another driver is stale", func(t *testing.T) {
		maps := demanding.node.Client.CoreV1().ConfigMaps(api.SystemNamespace)
		m, err := maps.Get(t.Context(), proofs.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.Data[proofs.Key] = strings.ReplaceAll(m.Data[proofs.Key], "580.95.05", "570.86.15")
		if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if text := demanding.awaitProof(false); !strings.Contains(text, "stale: tried with driver 570.86.15") {
			t.Errorf("denied with %q", text)
		}
		demanding.command(4, []string{"doctor"}, "proofs: what was proved on pool", "stale: tried with driver 570.86.15")
		if err := maps.Delete(t.Context(), proofs.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// awaitProof waits until the webhooks admit pods of a namespace that demands a proof, or deny them, and returns the latest denial.
func (s *stage) awaitProof(admitted bool) (denial string) {
	s.Helper()
	pod := slice("2Gi", "demanding", sliced("trainer", "hold 1GiB"))
	err := wait.PollUntilContextTimeout(s.Context(), 200*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		_, err := s.node.Client.CoreV1().Pods(s.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "not proven") {
			return false, err
		}
		if err != nil {
			denial = err.Error()
		}
		return (err == nil) == admitted, nil
	})
	if err != nil {
		s.Fatalf("admitted is not %t: %v; the latest denial is %q", admitted, err, denial)
	}
	return denial
}

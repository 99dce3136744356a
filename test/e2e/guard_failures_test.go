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
)

// TestGuardFailures: guards that really run and cannot read the GPUs take the guard from the plans of pods to come. Their policy has them
// reach the driver by a mount, which the node's runtime ignores; that tells them from the guards of other tests, too.
func TestGuardFailures(t *testing.T) {
	t.Parallel()
	t.Run("in two namespaces lower the plan of a third", func(t *testing.T) {
		t.Parallel()
		third := newStage(t, "volume", fakegpu.Config{Devices: devices})
		third.awaitPlan("with a guard, before", true)
		for _, name := range []string{"a", "b"} {
			s := &stage{T: t, node: third.node, namespace: namespaceOf(t.Name() + name)}
			if err := s.node.Namespace(t.Context(), s.namespace, map[string]string{"policy": "volume"}); err != nil &&
				!apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
			t.Cleanup(s.end)
			s.gpu(fakegpu.Config{Devices: devices})
			s.create(slice("8Gi", "train", sliced("trainer", "hold 1GiB")))
		}
		third.awaitPlan("without a guard", false)
	})
}

// awaitPlan returns once new pods are planned with or without a guard.
func (s *stage) awaitPlan(what string, guard bool) {
	s.Helper()
	planned := ""
	err := wait.PollUntilContextTimeout(s.Context(), time.Second, within, true, func(ctx context.Context) (bool, error) {
		made, err := s.node.Client.CoreV1().Pods(s.namespace).Create(ctx, slice("8Gi", "next", sliced("trainer", "hold 1GiB")),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err
		}
		planned = made.Annotations[api.AnnotationPlanned]
		failed := strings.Contains(planned, "no guard is counted on: the last guards there")
		return strings.Contains(planned, `"guard"`) == guard && failed != guard, nil
	})
	if err != nil {
		s.Fatalf("no pod is planned %s: %v: %s", what, err, planned)
	}
}

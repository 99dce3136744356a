package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// startWatcher starts a ClusterWatcher, whose generation the test sets.
func startWatcher(t *testing.T, s *cluster.APIServer) (w *ledger.ClusterWatcher, generation *atomic.Int64) {
	generation = &atomic.Int64{}
	w = &ledger.ClusterWatcher{Client: s.Client, HoldingOf: hold, Generation: func(string) any { return generation.Load() },
		Gone: &ledger.GonePods{}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return w, generation
}

// awaitGPUs waits until watches show so many whole devices.
func awaitGPUs(t *testing.T, w *ledger.ClusterWatcher, want int64) (v ledger.View) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		view, ok := w.View([]string{"team-a"}, []ledger.Reservation{{PodUID: "of no pod"}})
		var gpus int64
		for _, h := range view.Base {
			gpus += h.Charge.GPUs
		}
		if ok && gpus == want {
			return view
		}
		if time.Now().After(deadline) {
			t.Fatalf("shown: %v %+v, want %d GPUs", ok, view, want)
		}
	}
}

func TestClusterWatcherOnAPIServer(t *testing.T) {
	s := cluster.ForTest(t, cluster.Options{})
	ctx := t.Context()
	if err := s.Namespace(ctx, "team-a", nil); err != nil {
		t.Fatal(err)
	}
	pods := s.Client.CoreV1().Pods("team-a")
	for i := range 3 {
		if _, err := pods.Create(ctx, gpuPod(fmt.Sprintf("pod-%d", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w, generation := startWatcher(t, s)
	first := awaitGPUs(t, w, 3)
	deleted, err := pods.Get(ctx, "pod-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(ctx, "pod-0", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	second := awaitGPUs(t, w, 2)
	if a, b := first.Namespaces[0].Revision, second.Namespaces[0].Revision; b <= a {
		t.Errorf("a deletion is shown at revision %d, what was before at %d", b, a)
	}
	ended, err := pods.Get(ctx, "pod-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended.Status.Phase = "Succeeded"
	if _, err := pods.UpdateStatus(ctx, ended, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	third := awaitGPUs(t, w, 1)
	if len(third.Unmanaged) != 1 || third.Unmanaged[0].Name != "pod-2" {
		t.Fatalf("unmanaged %+v, want pod-2", third.Unmanaged)
	}
	if !w.Gone.Has(string(deleted.UID)) || !w.Gone.Has(string(ended.UID)) || w.Gone.Has(third.Unmanaged[0].UID) {
		t.Error("the pods that ended or were deleted are not those that are gone")
	}
	t.Run("a watch goes on after the API server was started again", func(t *testing.T) {
		if err := s.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := pods.Create(ctx, gpuPod("later"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		awaitGPUs(t, w, 2)
	})
	t.Run("another generation has the pods read anew", func(t *testing.T) {
		generation.Add(1)
		if _, ok := w.View([]string{"team-a"}, nil); ok {
			t.Error("what was read for another generation is shown")
		}
		awaitGPUs(t, w, 2)
	})
}

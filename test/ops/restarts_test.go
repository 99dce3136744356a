package ops

import (
	"context"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// asDeployed is how replicas end by the manifests.
var asDeployed = []string{"--drain", "15s", "--idle-grace", "15s"}

// TestRestarts restarts one replica after the other under as much load as the machine gives.
func TestRestarts(t *testing.T) {
	t.Run("no call fails while replicas are restarted", func(t *testing.T) {
		restarts, least := scaled(6, 20), scaled(2000.0, 200_000.0)
		l := newLab(t, cluster.Options{}, install.Options{Replicas: 3, Arguments: asDeployed}, "")
		ctx, cancel := context.WithTimeout(t.Context(), scaled(3*time.Minute, 40*time.Minute))
		defer cancel()
		before, begin := l.calls(), time.Now()
		load := l.load(24, l.judged)
		done := 0
		for ; done < restarts || l.calls().since(before).made < least; done++ {
			if ctx.Err() != nil {
				t.Fatalf("%d restarts and %.0f calls were made in time", done, l.calls().since(before).made)
			}
			l.must(l.replace(ctx, done%3, ""))
			pause(ctx, scaled(0, 5*time.Second))
		}
		l.leaving.Wait()
		load.end()
		told, took := l.calls().since(before), time.Since(begin)
		t.Logf("%d restarts in %s: %.0f calls, %.0f unanswered; %d pods, p99 %s", done, took.Round(time.Second), told.made,
			told.unanswered, load.count(), brief(quantile(load.times, 99)))
		figure("rolling restarts", "restarts, calls, failed", "%d, %.0f, %.0f", done, told.made, told.unanswered)
		figure("rolling restarts", "pods judged a second; p50, p99", "%.0f; %s, %s", float64(load.count())/took.Seconds(),
			brief(quantile(load.times, 50)), brief(quantile(load.times, 99)))
		if text := load.failures(); text != "" || told.unanswered > 0 {
			t.Errorf("%.0f calls were not answered; pods that failed:\n%s", told.unanswered, text)
		}
	})
}

// TestRestartsSeen is what the others rest on: without the time to drain, calls fail, and are seen to.
func TestRestartsSeen(t *testing.T) {
	t.Run("a load sees a replica that leaves at once", func(t *testing.T) {
		l := newLab(t, cluster.Options{}, install.Options{Replicas: 3, Arguments: []string{"--drain", "0s"}}, "")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		before := l.calls()
		load := l.load(24, l.judged)
		for k := 0; l.calls().since(before).unanswered == 0; k++ {
			l.must(l.replace(ctx, k%3, ""))
		}
		load.end()
		if load.failures() == "" {
			t.Error("calls failed, and no pod was seen to fail")
		}
	})
}

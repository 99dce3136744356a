package ops

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// watched is what must not grow: summed over the replicas.
type watched struct{ goroutines, resident, ledgers float64 }

// TestSoak creates and deletes pods at a steady pace, and compares the last third of the time with the
// middle one: the first is for caches to fill.
func TestSoak(t *testing.T) {
	t.Run("nothing grows over time", func(t *testing.T) {
		last := soak(t)
		l := newLab(t, cluster.Options{}, install.Options{Replicas: 2}, "")
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		load := l.load(2, func(ctx context.Context) error {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			pods := l.Server.Client.CoreV1().Pods(team)
			p, err := pods.Create(ctx, slice(), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			return pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		})
		eventually(t, settles, "the first pods come and go", func() string {
			if load.count() == 0 {
				return "none did: " + load.failures()
			}
			return ""
		})
		var all []watched
		for end := time.Now().Add(last); time.Now().Before(end); pause(t.Context(), last/180) {
			all = append(all, l.watch())
		}
		load.end()
		if text := load.failures(); text != "" {
			t.Errorf("creates and deletes failed:\n%s", text)
		}
		third := len(all) / 3
		middle, end := all[third:2*third], all[2*third:]
		for _, w := range []struct {
			name         string
			of           func(watched) float64
			factor, room float64 // beyond which it is a leak, and no noise
		}{
			{"goroutines", func(w watched) float64 { return w.goroutines }, 1.2, 20},
			{"resident memory, MiB", func(w watched) float64 { return w.resident / (1 << 20) }, 1.3, 20},
			{"ledger, bytes", func(w watched) float64 { return w.ledgers }, 1.5, 4096},
		} {
			was, is := median(middle, w.of), median(end, w.of)
			t.Logf("%s: %.0f, then %.0f", w.name, was, is)
			figure("soak of "+last.String(), w.name+": middle third, last third", "%.0f, %.0f (%+.1f %%)", was, is, 100*(is-was)/max(was, 1))
			if is > was*w.factor+w.room {
				t.Errorf("%s: %.0f in the middle third, %.0f in the last", w.name, was, is)
			}
		}
		figure("soak of "+last.String(), "pods created and deleted", "%d", load.count())
		if load.count() < 100 {
			t.Errorf("%d pods are no load", load.count())
		}
	})
}

// soak is how long the test lasts: GPUSLICE_SOAK, or as long as CI has.
func soak(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("GPUSLICE_SOAK")
	if text == "" {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 10*time.Second {
		t.Fatalf("GPUSLICE_SOAK is %q: write a duration of 10s or more", text)
	}
	return d
}

func (l *lab) watch() (w watched) {
	l.t.Helper()
	for _, p := range l.Replicas {
		m, err := metricsOf(l.t.Context(), p.Probes)
		l.must(err)
		w.goroutines += m.sum("go_goroutines")
		w.resident += m.sum("process_resident_memory_bytes")
	}
	name := ledger.ObjectName(config.QuotaSpec{}.BudgetKey(team))
	object, err := ledger.ClusterStore{Client: l.Server.Client, Namespace: system}.Get(l.t.Context(), name)
	l.must(err)
	w.ledgers = float64(len(object.Data))
	return w
}

func median(of []watched, what func(watched) float64) float64 {
	var values []float64
	for _, w := range of {
		values = append(values, what(w))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

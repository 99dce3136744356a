package reference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestPage(t *testing.T) {
	t.Parallel()
	t.Run("what is registered is written and read again", func(t *testing.T) {
		t.Parallel()
		r := prometheus.NewRegistry()
		r.MustRegister(
			prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gpuslice_empty", Help: `Says "a, b: {c}".`}, []string{"one", "two"}),
			prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gpuslice_empty_total", Help: "No series yet."}, []string{"one"}),
			prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gpuslice_duration_seconds", Help: "Takes so long."}),
			prometheus.NewGauge(prometheus.GaugeOpts{Name: "gpuslice_check", Help: "By check.", ConstLabels: prometheus.Labels{"check": "a"}}),
			prometheus.NewGauge(prometheus.GaugeOpts{Name: "gpuslice_check", Help: "By check.", ConstLabels: prometheus.Labels{"check": "b"}}),
			prometheus.NewGauge(prometheus.GaugeOpts{Name: "go_foreign", Help: "Not ours."}),
		)
		metrics, err := Of(r)
		if err != nil {
			t.Fatal(err)
		}
		want := []Metric{
			{"gpuslice_check", "gauge", "By check.", []string{"check"}},
			{"gpuslice_duration_seconds", "histogram", "Takes so long.", nil},
			{"gpuslice_empty", "gauge", `Says "a, b: {c}".`, []string{"one", "two"}},
			{"gpuslice_empty_total", "counter", "No series yet.", []string{"one"}},
		}
		if diff := cmp.Diff(want, metrics); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		for i := range want {
			want[i].Help = ""
		}
		if diff := cmp.Diff(want, Read(Page("# Metrics\n", metrics))); diff != "" {
			t.Errorf("read again (-want +got)\n%s", diff)
		}
	})
	t.Run("a type that the name does not imply is an error", func(t *testing.T) {
		t.Parallel()
		r := prometheus.NewRegistry()
		r.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "gpuslice_empty_total", Help: "A gauge."}))
		if _, err := Of(r); err == nil {
			t.Error("a gauge is named as a counter")
		}
	})
}

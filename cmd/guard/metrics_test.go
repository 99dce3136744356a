package main

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/guard/limits"
)

func TestMetricsHaveStableNames(t *testing.T) {
	t.Parallel()
	l, err := limits.FromEnv(lookup(held(nil)))
	if err != nil {
		t.Fatal(err)
	}
	u := filled(l)
	w := httptest.NewRecorder()
	metricsHandler(u).ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/metrics", nil))
	for _, want := range []string{
		`gpuslice_guard_memory_used_bytes{container="trainer",device="gpu0"} 4096`,
		`gpuslice_guard_memory_peak_bytes{container="trainer",device="gpu0"} 8192`,
		`gpuslice_guard_memory_slice_bytes{container="trainer"} 8.589934592e+09`,
		`gpuslice_guard_memory_limit_bytes{container="trainer"} 8.589934592e+09`,
		`gpuslice_guard_memory_byte_seconds_total{container="trainer",device="gpu0"} 8192`,
		`gpuslice_guard_ends_total{container="trainer",result="ended"} 1`,
		`gpuslice_guard_warnings_total{container="trainer"} 2`,
		"gpuslice_guard_blind 1", "gpuslice_guard_blind_seconds_total 2",
		`gpuslice_guard_utilization_percent{container="trainer",device="gpu0"} 40`,
		`gpuslice_guard_look_seconds_count 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %q in\n%s", want, w.Body.String())
		}
	}
}

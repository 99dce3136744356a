package main

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/observability/reference"
)

var update = flag.Bool("update", false, "rewrite the page of metrics")

const metricsPage = "../../guard/METRICS.md"

const metricsHead = `# Metrics of the guard

Each guard serves the metrics of its own pod under ` + "`/metrics`" + `, on the port that the policy sets with ` + "`guard.metricsPort`" + `. Without that port, and
in pods on the host's network, it serves none. [Dashboard and alerts](../deploy/observability) has a PodMonitor. ` + "`result`" + ` is
` + "`terminated`, `gone`, `dry-run`, `skipped`, `denied` or `timed-out`" + `. Names and labels are stable: before one is removed, it is deprecated for a
release.

` + "`go test ./cmd/guard -run MetricsPage -update`" + ` generates this page.
`

func TestMetricsPage(t *testing.T) {
	t.Parallel()
	l, err := limits.FromEnv(lookup(environment(nil)))
	if err != nil {
		t.Fatal(err)
	}
	found, err := reference.Of(registry(filledRecorder(l)))
	if err != nil {
		t.Fatal(err)
	}
	want := reference.Page(metricsHead, found)
	if *update {
		if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("(-registered +page, go test ./cmd/guard -run MetricsPage -update writes it)\n%s", diff)
	}
}

func TestMetricsHandler(t *testing.T) {
	t.Parallel()
	l, err := limits.FromEnv(lookup(environment(nil)))
	if err != nil {
		t.Fatal(err)
	}
	r := filledRecorder(l)
	w := httptest.NewRecorder()
	metricsHandler(r).ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/metrics", nil))
	for _, want := range []string{
		`gpuslice_guard_memory_used_bytes{container="trainer",device="gpu0"} 4096`,
		`gpuslice_guard_memory_peak_bytes{container="trainer",device="gpu0"} 8192`,
		`gpuslice_guard_memory_slice_bytes{container="trainer"} 8.589934592e+09`,
		`gpuslice_guard_memory_limit_bytes{container="trainer"} 8.589934592e+09`,
		`gpuslice_guard_memory_byte_seconds_total{container="trainer",device="gpu0"} 8192`,
		`gpuslice_guard_terminations_total{container="trainer",result="terminated"} 1`,
		`gpuslice_guard_warnings_total{container="trainer"} 2`,
		`gpuslice_guard_terminations_total{container="trainer",result="timed-out"} 0`,
		`gpuslice_guard_device_memory_bytes{device="gpu0"} 16384`,
		"gpuslice_guard_not_enforcing 1", "gpuslice_guard_not_enforcing_seconds_total 2",
		`gpuslice_guard_utilization_ratio{container="trainer",device="gpu0"} 0.4`,
		`gpuslice_guard_sample_duration_seconds_count 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %q in\n%s", want, w.Body.String())
		}
	}
}

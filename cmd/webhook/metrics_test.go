package main

import (
	"context"
	"flag"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/test/observability/reference"
	"github.com/gpuslice/gpuslice/webhook/metrics"
)

var update = flag.Bool("update", false, "rewrite the page of metrics")

const metricsPage = "../../webhook/METRICS.md"

const metricsHead = `# Metrics of the webhook

Each replica serves these metrics on port 8080 under ` + "`/metrics`" + `, with metrics of Go and of the process. Sum counts of reviews over the
replicas. Take the maximum of metrics about the cluster: all replicas serve the same value, or only the leader serves one. Names and
labels are stable: before one is removed, it is deprecated for a release.

` + "`go test ./cmd/webhook -run MetricsPage -update`" + ` generates this page.
`

func TestMetricsPage(t *testing.T) {
	// runs the real wiring for a moment, so that every part registers what it has.
	t.Run("is what is registered", func(t *testing.T) {
		m := metrics.New("test")
		over, end := context.WithCancel(t.Context())
		end()
		args := []string{"--kubeconfig", kubeconfigFile(t), "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--drain=0s"}
		code := execute(over, args, io.Discard, io.Discard, func(ctx context.Context, o Options, stderr io.Writer) error {
			return runCounted(ctx, o, m, stderr)
		})
		if code != exitOK {
			t.Fatalf("exit %d", code)
		}
		found, err := reference.Of(m.Registerer().(*prometheus.Registry))
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
			t.Errorf("(-registered +page, go test ./cmd/webhook -run MetricsPage -update writes it)\n%s", diff)
		}
	})
}

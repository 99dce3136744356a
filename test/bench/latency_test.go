package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// pace is the creates a second at which latency is asked for: more than the scheduler of a cluster starts.
const pace = 200

// TestPrintLatencyAtAPace prints what a create takes at a steady pace, without a webhook, with one that only answers and
// with ours, and what of it our own handlers take. The creates are dry runs, which take all of admission.
func TestPrintLatencyAtAPace(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	dir := t.TempDir()
	binary, err := install.Binary(t.Context(), dir, "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	i, err := install.New(t.Context(), server, binary, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	setUp(t, i)
	times, took := map[string][]time.Duration{}, map[string]time.Duration{}
	before := handlerTimes(t, i)
	for range rounds {
		for _, namespace := range []string{without, answering, ours} {
			begin := time.Now()
			times[namespace] = append(times[namespace], paced(t, i, namespace, 3*pace)...)
			took[namespace] += time.Since(begin)
		}
	}
	after := handlerTimes(t, i)
	fmt.Printf("%d creates a second, where the machine can\n%-22s %10s %10s %12s %12s\n", pace,
		"webhook", "p50", "p99", "added, p99", "creates/s")
	base := quantile(times[without], 99)
	for _, row := range []struct{ name, namespace string }{{"none", without}, {"only answers", answering}, {"gpuslice", ours}} {
		all := times[row.namespace]
		fmt.Printf("%-22s %10s %10s %12s %12.0f\n", row.name,
			quantile(all, 50).Round(10*time.Microsecond), quantile(all, 99).Round(10*time.Microsecond),
			(quantile(all, 99) - base).Round(10*time.Microsecond), float64(len(all))/took[row.namespace].Seconds())
	}
	for _, handler := range []string{"mutate-pods", "validate-pods"} {
		p50, p99 := between(before, after, handler, 50), between(before, after, handler, 99)
		fmt.Printf("handler %-22s p50 at most %g ms, p99 at most %g ms\n", handler, 1000*p50, 1000*p99)
		if p99 == 0 {
			t.Errorf("handler %s was not asked", handler)
		}
	}
}

// inFlight bounds the creates at a time. A machine that meets it does not keep the pace, and the table says so.
const inFlight = 50

// paced begins n creates at the pace, whatever those before take, and returns how long each took.
func paced(t *testing.T, i *install.Installation, namespace string, n int) []time.Duration {
	t.Helper()
	times := make([]time.Duration, n)
	tick := time.NewTicker(time.Second / pace)
	defer tick.Stop()
	var running sync.WaitGroup
	places := make(chan struct{}, inFlight)
	for k := range n {
		<-tick.C
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			begin := time.Now()
			if _, err := i.Server.Client.CoreV1().Pods(namespace).Create(context.WithoutCancel(t.Context()), pod(),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Error(err)
			}
			times[k] = time.Since(begin)
		})
	}
	running.Wait()
	return times
}

var bucket = regexp.MustCompile(`(?m)^gpuslice_admission_duration_seconds_bucket\{handler="([^"]+)",le="([^"]+)"\} (\S+)$`)

// counted is how many answers of a handler took at most so long.
type counted struct{ within, n float64 }

// handlerTimes reads the histogram of each handler, bucket by bucket.
func handlerTimes(t *testing.T, i *install.Installation) map[string][]counted {
	t.Helper()
	response, err := http.Get("http://" + i.Webhook.Probes + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]counted{}
	for _, m := range bucket.FindAllStringSubmatch(string(text), -1) {
		within, err := strconv.ParseFloat(strings.TrimPrefix(m[2], "+"), 64)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		out[m[1]] = append(out[m[1]], counted{within, n})
	}
	return out
}

// between is the bound of the bucket that holds the percentile of what was answered between two readings; 0: nothing was.
func between(before, after map[string][]counted, handler string, percent float64) float64 {
	was, is := before[handler], after[handler]
	count := func(k int) float64 {
		if k < len(was) {
			return is[k].n - was[k].n
		}
		return is[k].n
	}
	for k := range is {
		if all := count(len(is) - 1); all > 0 && count(k) >= all*percent/100 {
			return is[k].within
		}
	}
	return 0
}

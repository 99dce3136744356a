package ops

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// metrics are the samples of a page of metrics.
type metrics []sample

type sample struct {
	name, labels string
	value        float64
}

// parse reads the text format. Labels stay as they are written.
func parse(text string) (all metrics) {
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			continue
		}
		name, labels, _ := strings.Cut(line[:at], "{")
		all = append(all, sample{name, labels, value})
	}
	return all
}

// sum adds up a metric over the samples whose labels hold all of the words.
func (m metrics) sum(name string, words ...string) (total float64) {
next:
	for _, s := range m {
		if s.name != name {
			continue
		}
		for _, w := range words {
			if !strings.Contains(s.labels, w) {
				continue next
			}
		}
		total += s.value
	}
	return total
}

// metricsOf reads the metrics of a replica.
func metricsOf(ctx context.Context, probes string) (metrics, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+probes+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return parse(string(text)), err
}

// calls are the API server's calls of our webhooks, as it counts them itself: replicas that end take their own counts along.
type calls struct{ made, unanswered float64 }

func (l *lab) calls() calls {
	l.t.Helper()
	text, err := l.Server.Client.RESTClient().Get().AbsPath("/metrics").DoRaw(context.WithoutCancel(l.t.Context()))
	l.must(err)
	all := parse(string(text))
	const ours = `gpuslice.dev"`
	return calls{
		made: all.sum("apiserver_admission_webhook_request_total", ours),
		unanswered: all.sum("apiserver_admission_webhook_fail_open_count", ours) +
			all.sum("apiserver_admission_webhook_rejection_count", ours, `error_type="calling_webhook_error"`),
	}
}

// since is what was counted after before.
func (c calls) since(before calls) calls {
	return calls{c.made - before.made, c.unanswered - before.unanswered}
}

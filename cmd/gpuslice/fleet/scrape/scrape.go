// Package scrape reads how much of its slice each container uses now, where it is measured, through the API server's proxy: from the
// agent of the pod's node, or from the guard in the pod.
//
//	pods -> usages (read.go), from scrapes (scrape.go)
package scrape

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/guard/shorten"
)

// Bounds on one scrape: the program that answers in a pod may be its tenant's.
const (
	scrapeTimeout = 10 * time.Second
	maxOfGuard    = 256 << 10
	maxOfAgent    = 16 << 20
	maxOfError    = 64 << 10
)

// Client reads metrics of pods through the API server.
type Client struct{ kubernetes.Interface }

// Connect returns a client that follows no redirect, so that the credentials go to the API server alone.
func Connect(config *rest.Config) (Client, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedErrors{next} })
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return Client{}, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	transport.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		return Client{}, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return Client{client}, nil
}

// boundedErrors cuts off the body of an answer that is no success: client-go reads all of it into memory.
type boundedErrors struct{ next http.RoundTripper }

func (b boundedErrors) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil && resp.StatusCode/100 != 2 {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxOfError), resp.Body}
	}
	return resp, err
}

// series are metrics by name.
type series map[string]*dto.MetricFamily

// scrape reads the metrics that a port of a pod serves, of at most so many bytes.
func (s Client) scrape(ctx context.Context, namespace, pod string, port, most int) (series, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	body, err := s.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").
		Name("http:" + pod + ":" + strconv.Itoa(port)).SubResource("proxy").Suffix("metrics").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("read metrics: more than %d bytes", most)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return all, nil
}

// labels are of one series.
type labels map[string]string

// each calls use for every series of a name with these labels and a value that can be.
func (s series) each(name string, want labels, use func(labels, float64)) {
	for _, m := range s[name].GetMetric() {
		have := labels{}
		for _, pair := range m.GetLabel() {
			have[pair.GetName()] = pair.GetValue()
		}
		value := m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		if have.match(want) && value >= 0 && value < math.MaxInt64 { // neither is NaN
			use(have, value)
		}
	}
}

func (l labels) match(want labels) bool {
	for name, value := range want {
		if l[name] != value {
			return false
		}
	}
	return true
}

// value is that of the first series of a name with these labels.
func (s series) value(name string, want labels) (value float64, found bool) {
	s.each(name, want, func(_ labels, v float64) {
		if !found {
			value, found = v, true
		}
	})
	return value, found
}

// short is the first line of an error that another system may have written.
func short(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return shorten.Text(line, 200)
}

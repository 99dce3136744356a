package history

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	queryStep    = time.Hour // as long as the hours of a history
	queryChunk   = 24 * time.Hour
	queryTimeout = 2 * time.Minute
	maxError     = 64 << 10
)

// Prometheus is a server's HTTP API.
type Prometheus struct {
	name   string // for errors
	base   *url.URL
	client *http.Client
	header http.Header // of each request: a login, or the tenant of a server that has several

	// Cluster is the one whose series are read, by the labels of servers with several; "": all.
	Cluster string
	// Incomplete is what the server said of incomplete answers.
	Incomplete Incomplete
}

// AtURL is the server at an address, which a bearer token ("": none) and an authority (PEM; nil: the system's) open.
func AtURL(address, token string, authority []byte) (*Prometheus, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%q: accepted: http://HOST:PORT, https://HOST, or NAMESPACE/SERVICE:PORT", address)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if authority != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authority) {
			return nil, errors.New("the file of the authority has no PEM certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p := &Prometheus{name: base.Redacted(), base: base, client: client, header: http.Header{}}
	if token != "" {
		p.header.Set("Authorization", "Bearer "+token)
	}
	return p, nil
}

// addHeaders adds headers of the form "NAME: VALUE". One that the API server would read may not go through its proxy.
func (p *Prometheus) addHeaders(all []string, throughAPIServer bool) error {
	for _, h := range all {
		name, value, ok := strings.Cut(h, ":")
		name, value = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case !ok || name == "" || value == "" || name == "Host": // the rest is for the transport, which checks both
			return fmt.Errorf("%.80q: accepted: \"NAME: VALUE\" such as \"X-Scope-OrgID: team-a\"", h)
		case throughAPIServer && (name == "Authorization" || strings.HasPrefix(name, "Impersonate-")):
			return fmt.Errorf("%s is for the API server, through which the Service is read: name Prometheus by a URL", name)
		}
		p.header.Add(name, value)
	}
	return nil
}

// get returns the body of the answer to a range query. A server that is too busy gets the query again.
func (p *Prometheus) get(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	u := p.base.JoinPath("api/v1/query_range")
	u.RawQuery = query.Encode()
	for try := 1; ; try++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, err
		}
		maps.Copy(req.Header, p.header)
		resp, err := p.client.Do(req)
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // its text repeats the query
		}
		if err != nil {
			return nil, unreachable(err)
		}
		if resp.StatusCode == http.StatusOK {
			if limited := resp.Header.Get("M3-Results-Limited"); limited != "" {
				p.Incomplete.add("M3-Results-Limited: " + limited)
			}
			return resp.Body, nil
		}
		err = answered(resp)
		resp.Body.Close()
		pause, busy := pauseOf(resp)
		if !busy || try == maxTries {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// serviceLabels select the services of Prometheus, as the Prometheus operator, its chart and the community's chart label them.
var serviceLabels = []string{"operated-prometheus=true", "app=kube-prometheus-stack-prometheus",
	"app.kubernetes.io/name=prometheus", "app=prometheus"}

// InCluster is the server of a service, reached through the API server as kubectl get --raw reaches it. name is NAMESPACE/SERVICE:PORT,
// or "" for the one that is found.
func InCluster(ctx context.Context, client kubernetes.Interface, name string) (*Prometheus, error) {
	if name == "" {
		found, err := findService(ctx, client)
		if err != nil {
			return nil, err
		}
		name = found
	}
	namespace, service, ok := strings.Cut(name, "/")
	service, port, _ := strings.Cut(service, ":")
	if !ok || namespace == "" || service == "" || strings.Contains(port, "/") {
		return nil, fmt.Errorf("--prometheus %q: accepted: http://HOST:PORT, https://HOST, or NAMESPACE/SERVICE:PORT", name)
	}
	if port == "" {
		port = "9090"
	}
	api := client.CoreV1().RESTClient()
	base := api.Get().Namespace(namespace).Resource("services").Name("http:" + service + ":" + port).SubResource("proxy").URL()
	return &Prometheus{name: "service " + name, base: base, client: api.(*rest.RESTClient).Client, header: http.Header{}}, nil
}

func findService(ctx context.Context, client kubernetes.Interface) (string, error) {
	for _, selector := range serviceLabels {
		list, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 100})
		if err != nil {
			return "", fmt.Errorf("find Prometheus: %w; name it with --prometheus NAMESPACE/SERVICE:PORT", err)
		}
		var names []string
		for i := range list.Items {
			if port := portOf(&list.Items[i]); port != 0 {
				names = append(names, fmt.Sprintf("%s/%s:%d", list.Items[i].Namespace, list.Items[i].Name, port))
			}
		}
		if slices.Sort(names); len(names) > 1 {
			return "", fmt.Errorf("the cluster has %d services of Prometheus: name one with --prometheus: %.300s",
				len(names), strings.Join(names, ", "))
		}
		if len(names) == 1 {
			return names[0], nil
		}
	}
	return "", ErrNoService
}

// ErrNoService is returned where the cluster has no service of Prometheus.
var ErrNoService = errors.New("no service of Prometheus found: name it with --prometheus NAMESPACE/SERVICE:PORT or a URL")

// portOf is the port of a service that serves Prometheus' API; 0: there is none.
func portOf(s *corev1.Service) int32 {
	for _, p := range s.Spec.Ports {
		if slices.Contains([]string{"http-web", "web", "http"}, p.Name) || p.Port == 9090 {
			return p.Port
		}
	}
	return 0
}

// by keeps the labels that name a container, under the names that Prometheus may have given them, and a device and a cluster.
const by = clusterNames + ",namespace,exported_namespace,pod,exported_pod,container,exported_container,"

// queries are the queries for metrics of gpuslice itself, and of engines: the metric that the answer is of, and PromQL.
var queries = []struct{ metric, query string }{
	{"gpuslice_agent_memory_used_bytes",
		`max by (` + by + `device) (` + highest("gpuslice_agent_memory_used_bytes", "gpuslice_guard_memory_used_bytes") + `)`},
	{"gpuslice_agent_memory_peak_bytes",
		`max by (` + by + `device) (` + highest("gpuslice_agent_memory_peak_bytes", "gpuslice_guard_memory_peak_bytes") + `)`},
	{"gpuslice_agent_memory_slice_bytes",
		`max by (` + by + `device) (last_over_time({__name__=~"gpuslice_(agent|guard)_memory_slice_bytes"}[1h]))`},
	{warningsOfHour, riseOf("warnings_total")},
	{terminationsOfHour, riseOf(`terminations_total{result="terminated"}`)},
	{killsOfHour, killed},
	{podOwner,
		`max by (` + by + `owner_kind,owner_name) (last_over_time(kube_pod_owner{owner_kind!~"Node|ReplicaSet|StatefulSet|<none>"}[1h]))`},
	{"vllm:kv_cache_usage_perc",
		`max by (` + by + `device) (` + highest("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage") + `)`},
}

// highest is the maximum of each series in an hour. The metrics stand apart, because the function drops their names, and Prometheus
// answers an error if two series then have the same labels, as those of a vLLM have that serves both names of its metric.
func highest(metrics ...string) string {
	return "max_over_time(" + strings.Join(metrics, "[1h]) or max_over_time(") + "[1h])"
}

// killed are containers, as kube-state-metrics knows them, that the kernel killed for the memory of the host: their peaks were cut off.
// The metric stays until a container ends for another reason, and so counts where it appears.
const killed = `sum by (` + by + `device) (last_over_time(` + killedMetric +
	`[1h]) unless last_over_time(` + killedMetric + `[6h] offset 1h)) > 0`

const killedMetric = lastTerminated + `{reason="` + oomKilled + `"}`

// riseOf is the rise of counters of agents and guards in each hour. One that appears counts whole: the counted event made it appear.
// The difference to the hour before is exact. increase(), which extrapolates and misses what happens between two hours, stands in after
// a reset or a gap.
func riseOf(counter string) string {
	var parts []string
	for _, of := range []string{"agent", "guard"} {
		c := "gpuslice_" + of + "_" + counter
		parts = append(parts, fmt.Sprintf("(last_over_time(%[1]s[1h]) unless last_over_time(%[1]s[6h] offset 1h)) or "+
			"(last_over_time(%[1]s[1h]) - last_over_time(%[1]s[1h] offset 1h) >= 0) or increase(%[1]s[1h])", c))
	}
	return `sum by (` + by + `device) (` + strings.Join(parts, " or ") + `) > 0`
}

// byPod is a function of DCGM exporter's metric over each hour. For a GPU that no pod has, the exporter names none, and Prometheus adds
// the pod that it scraped: such series get the label of_exporter.
func byPod(function, metric string) string {
	const scraped = ` on (job, instance, namespace, pod) last_over_time(up[1h])`
	without := function + `(` + metric + `{exported_pod=""}[1h])`
	return function + `(` + metric + `{exported_pod!=""}[1h]) or (` + without + ` unless` + scraped + `) or label_replace(` + without + ` and` + scraped +
		`, "` + labelOfExporter + `", "true", "", "")`
}

const dcgmLabels = labelOfExporter + ",Hostname,UUID,gpu,GPU_I_ID"

// dcgmQueries are the queries for DCGM exporter's metrics, for the workloads that gpuslice did not measure.
var dcgmQueries = []struct{ metric, query string }{
	{dcgmUsed, `max by (` + by + dcgmLabels + `) (` + byPod("max_over_time", dcgmUsed) + `)`},
	{dcgmFree, `min by (` + by + dcgmLabels + `) (` + byPod("min_over_time", dcgmFree) + `)`},
	{dcgmTotal, `max by (` + by + dcgmLabels + `) (` + byPod("last_over_time", dcgmTotal) + `)`},
}

// Read reads what a server knows of the hours from that of one time to that of another. progress is called before each query, with the
// part that is done. Agents are in the namespace system.
func (p *Prometheus) Read(ctx context.Context, system string, from, until time.Time, progress func(done float64)) (*Records, error) {
	// The last second of an hour of the clock: a query looks back one hour, and a history counts by the clock.
	first, last := from.Truncate(queryStep).Add(queryStep-time.Second), until.Truncate(queryStep).Add(queryStep-time.Second)
	records := NewRecords()
	records.System = system
	records.Until, records.server, records.Cluster = float64(last.Unix()), true, p.Cluster
	all := float64(len(queries) + len(dcgmQueries))
	for i, q := range append(slices.Clone(queries), dcgmQueries...) {
		err := p.each(ctx, ranges{
			from: first, until: last.Add(queryStep), step: queryStep, slow: errSlow,
			query: func(start, end time.Time) url.Values {
				progress((float64(i) + float64(start.Sub(first))/float64(last.Sub(first)+queryStep)) / all)
				return url.Values{"query": {q.query}, "start": {stamp(start)}, "end": {stamp(end.Add(-queryStep))}}
			},
			read: func(answer io.Reader) error { return records.ReadRangeQuery(answer, q.metric) },
		})
		if err != nil {
			return nil, err
		}
	}
	for _, text := range p.Incomplete {
		records.Incomplete.add(text)
	}
	return records, nil
}

// tooManySamples is in Prometheus' answer where a query would take more samples than --query.max-samples at a time.
const tooManySamples = "too many samples"

func stamp(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// errSlow is returned if an answer takes longer than queryTimeout.
var errSlow = fmt.Errorf("no answer to the query of a day within %s: set --since to less than a day, or read files with --from",
	queryTimeout)

// ranges are queries of the time from one time until before another.
type ranges struct {
	from, until time.Time
	step        time.Duration
	slow        error                                  // of an answer that takes longer than queryTimeout
	query       func(from, until time.Time) url.Values // of a part of the time
	read        func(answer io.Reader) error
}

// each queries each day apart, or less where a day takes too many samples.
func (p *Prometheus) each(ctx context.Context, r ranges) error {
	for chunk := queryChunk; r.from.Before(r.until); {
		end := r.from.Add(chunk)
		if end.After(r.until) {
			end = r.until
		}
		err := p.rangeQuery(ctx, r, end)
		if err != nil && chunk > time.Hour && wantsLess(err) {
			chunk = (chunk / 2).Truncate(r.step)
			continue
		}
		if err != nil {
			return fmt.Errorf("query Prometheus (%s): %w", p.name, err)
		}
		r.from = end
	}
	return nil
}

// rangeQuery queries the part until before end.
func (p *Prometheus) rangeQuery(ctx context.Context, r ranges, end time.Time) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, queryTimeout, r.slow)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	query := r.query(r.from, end)
	query.Set("step", strconv.Itoa(int(r.step.Seconds())))
	body, err := p.get(ctx, query)
	if err != nil {
		return err
	}
	defer body.Close()
	return r.read(&cancelable{ctx, body})
}

const (
	sumStep = time.Minute
	maxSums = 64 << 20 // bytes of one answer
)

var (
	errSlowSum = fmt.Errorf("no answer to the query of a day within %s", queryTimeout)
	errSums    = fmt.Errorf("an answer of more than %d MiB", maxSums>>20)
)

// Sum calls add with the labels of each series of an expression, and with the sum of its values at each minute from a time until before
// another: for each day apart, or for less where a day takes too many samples. A sum that is no amount, as after a division by zero, is
// left out.
func (p *Prometheus) Sum(ctx context.Context, expression string, from, until time.Time,
	add func(labels map[string]string, sum float64)) error {
	type found struct {
		labels map[string]string
		sum    float64
	}
	query := func(from, until time.Time) url.Values {
		// A subquery has values at whole minutes. Prometheus 2 takes one at the beginning of its time and 3 does not: there is none.
		at := stamp(until.Add(-time.Second))
		query := fmt.Sprintf("sum_over_time((%s)[%ds:%ds])", expression, int(until.Sub(from).Seconds()), int(sumStep.Seconds()))
		return url.Values{"query": {query}, "start": {at}, "end": {at}}
	}
	read := func(answer io.Reader) error {
		var all []found // added once the answer is known to be whole
		err := readRangeQuery(&budget{answer, maxSums, errSums}, func(labels map[string]string) (take, error) {
			return func(_, sum float64) {
				if sum >= 0 && !math.IsInf(sum, 0) {
					all = append(all, found{labels, sum})
				}
			}, nil
		}, p.Incomplete.add)
		if err != nil {
			return err
		}
		for _, f := range all {
			add(f.labels, f.sum)
		}
		return nil
	}
	return p.each(ctx, ranges{from: from, until: until, step: sumStep, slow: errSlowSum, query: query, read: read})
}

// Clusters are those of the series of a selector, each with the matcher that selects it. Series without a label of one are of "".
func (p *Prometheus) Clusters(ctx context.Context, selector string, from, until time.Time) (map[string]string, error) {
	all := map[string]string{}
	expression := "count by (" + clusterNames + ") (" + selector + ")"
	return all, p.Sum(ctx, expression, from, until, func(labels map[string]string, _ float64) {
		name := clusterOf(labels)
		for _, label := range clusterLabels {
			if name != "" && labels[label] == name {
				all[name] = label + "=" + strconv.Quote(name)
			}
		}
	})
}

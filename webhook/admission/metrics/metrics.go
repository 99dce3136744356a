// Package metrics counts the work of a replica of the webhook.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// Metrics are the webhook's figures, in a registry of their own. No label has a tenant's text: values come from
// closed sets in code, or are names that cluster admins chose.
type Metrics struct {
	registry  *prometheus.Registry
	decisions *prometheus.CounterVec
	durations *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	panics    prometheus.Counter
	broken    *prometheus.GaugeVec
	conflicts prometheus.Gauge
	tenants   *prometheus.GaugeVec
	pools     *prometheus.GaugeVec
	unsaved   prometheus.Counter
	quota     *prometheus.CounterVec
}

// New registers the metrics. version is the value of gpuslice_build_info.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		decisions: counters("decisions_total", "Pods and templates decided, by outcome, outcome under enforce, and reason.",
			"handler", "outcome", "if_enforced", "reason", "mode"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gpuslice_admission_duration_seconds", Help: "Time from reading the headers of a review to its answer.",
			Buckets: []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"handler"}),
		failures: counters("admission_failures_total", "Reviews answered with an HTTP error, so that failurePolicy decided.",
			"handler", "code"),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gpuslice_panics_total", Help: "Handlers that panicked.",
		}),
		broken: gauges("policy_broken", "1 for each invalid policy; last_good is true if an earlier version is in force.",
			"policy", "last_good"),
		conflicts: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gpuslice_policy_conflicts",
			Help: "Namespaces that several policies claim with equal right, further default policies, and shared budgets with different limits."}),
		tenants: gauges("tenant_policies", "Policy documents of tenants, by whether they can be used.", "usable"),
		pools:   gauges("pools", "Pools, by strategy and by source.", "strategy", "source"),
		unsaved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gpuslice_state_write_failures_total", Help: "Failed attempts to save last good policies and remembered pools.",
		}),
	}
	m.quota = counters("quota_requests_total", "Reservations requested: admitted, exceeded or busy.", "decision")
	for _, d := range []ledger.Decision{ledger.Admitted, ledger.Exceeded, ledger.Busy} {
		m.quota.WithLabelValues(string(d))
	}
	build := gauges("build_info", "Always 1.", "version")
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.decisions, m.durations, m.failures, m.panics,
		m.broken, m.conflicts, m.tenants, m.pools, m.unsaved, m.quota, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gpuslice_" + name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gpuslice_" + name, Help: help}, labels)
}

// CountUnsaved counts an attempt to save the state that failed.
func (m *Metrics) CountUnsaved() { m.unsaved.Inc() }

// WatchLedger adds the counts of the ledger of quotas.
func (m *Metrics) WatchLedger(counts func() ledger.Counts) {
	for name, c := range map[string]struct {
		help  string
		count func(ledger.Counts) int64
	}{
		"batches_total": {"Batches of requests decided and written together.", func(c ledger.Counts) int64 { return c.Batches }},
		"reads_total":   {"Ledgers read from the API server.", func(c ledger.Counts) int64 { return c.Gets }},
		"writes_total":  {"Ledgers written.", func(c ledger.Counts) int64 { return c.Writes }},
		"lists_total": {"Lists of pods, one for each namespace of a reconciled budget.",
			func(c ledger.Counts) int64 { return c.Lists }},
		"views_total":             {"Rounds that rest on watches of pods instead of a list.", func(c ledger.Counts) int64 { return c.Views }},
		"conflicts_total":         {"Ledger writes that lost to another replica.", func(c ledger.Counts) int64 { return c.Conflicts }},
		"unanswered_writes_total": {"Ledger writes that the API server did not answer.", func(c ledger.Counts) int64 { return c.Unanswered }},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "gpuslice_ledger_" + name, Help: c.help},
			func() float64 { return float64(c.count(counts())) }))
	}
}

// Registerer takes further metrics, which are served with these.
func (m *Metrics) Registerer() prometheus.Registerer { return m.registry }

// Handler serves the metrics, and others with them.
func (m *Metrics) Handler(others ...prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(append(prometheus.Gatherers{m.registry}, others...), promhttp.HandlerOpts{Registry: m.registry})
}

// ExpectHandler makes the series of a handler, so that its first failure is a rise from 0: increase() does not see a series
// begin.
func (m *Metrics) ExpectHandler(handler string) {
	m.durations.WithLabelValues(handler)
	for _, code := range []int{http.StatusRequestEntityTooLarge, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable} {
		m.failures.WithLabelValues(handler, strconv.Itoa(code))
	}
}

// WatchReadiness adds a condition of readiness: ready returns nil while it is met.
func (m *Metrics) WatchReadiness(check string, ready func() error) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gpuslice_ready",
		Help: "1 while the replica meets this condition of readiness.", ConstLabels: prometheus.Labels{"check": check}},
		func() float64 {
			if ready() != nil {
				return 0
			}
			return 1
		}))
}

// CountReview counts one request, by the HTTP status of its answer.
func (m *Metrics) CountReview(handler string, code int, took time.Duration) {
	m.durations.WithLabelValues(handler).Observe(took.Seconds())
	if code != http.StatusOK {
		m.failures.WithLabelValues(handler, strconv.Itoa(code)).Inc()
	}
}

// CountPanic counts a handler that panicked.
func (m *Metrics) CountPanic() { m.panics.Inc() }

// CountDecision counts one decision.
func (m *Metrics) CountDecision(handler string, d policies.Decision) {
	m.decisions.WithLabelValues(handler, string(d.Outcome), string(d.IfEnforced), d.Reason(), string(d.Mode)).Inc()
}

// CountQuotaRequest counts one request for room in a quota.
func (m *Metrics) CountQuotaRequest(d ledger.Decision) { m.quota.WithLabelValues(string(d)).Inc() }

// Snapshot has the figures of a snapshot.
type Snapshot struct {
	Broken    map[string]bool // policies that cannot be used as they are; true: an earlier version governs meanwhile
	Conflicts int
	Pools     []pools.Pool
}

// SetSnapshot sets the figures of the snapshot in force.
func (m *Metrics) SetSnapshot(s Snapshot) {
	m.conflicts.Set(float64(s.Conflicts))
	m.broken.Reset()
	for policy, lastGood := range s.Broken {
		m.broken.WithLabelValues(policy, strconv.FormatBool(lastGood)).Set(1)
	}
	m.pools.Reset()
	for _, p := range s.Pools {
		m.pools.WithLabelValues(string(p.Strategy), sourceOf(p)).Inc()
	}
}

// SetTenants counts tenants' own documents.
func (m *Metrics) SetTenants(usable, unusable int) {
	m.tenants.WithLabelValues("true").Set(float64(usable))
	m.tenants.WithLabelValues("false").Set(float64(unusable))
}

// sourceOf is where a pool is known from.
func sourceOf(p pools.Pool) string {
	switch {
	case p.Declared:
		return "declared"
	case len(p.Nodes) > 0:
		return "nodes"
	}
	return "remembered"
}

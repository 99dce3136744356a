package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gpuslice/gpuslice/guard"
)

// catalog is every metric but the histogram of samples. Names and labels are
// stable.
type catalog struct {
	used, peak, byteSeconds, slice, limit *prometheus.Desc
	terminations, warnings                *prometheus.Desc
	notEnforcing, notEnforcingSeconds     *prometheus.Desc
	utilization, device, sampleAge        *prometheus.Desc
}

func newCatalog() catalog {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gpuslice_guard_"+name, help, labels, nil)
	}
	return catalog{
		used: desc("memory_used_bytes",
			"GPU memory that the container uses on the device. Absent while that cannot be read.", "container", "device"),
		peak: desc("memory_peak_bytes", "Highest GPU memory use of the container observed on the device.", "container", "device"),
		byteSeconds: desc("memory_byte_seconds_total",
			"GPU memory that the container used on the device, in bytes times seconds.", "container", "device"),
		slice:               desc("memory_slice_bytes", "GPU memory of the container's slice on each of its devices.", "container"),
		limit:               desc("memory_limit_bytes", "GPU memory that the container may use on each device while there is room.", "container"),
		terminations:        desc("terminations_total", "Attempts to terminate processes, by result.", "container", "result"),
		warnings:            desc("warnings_total", "Warnings to the container's owner.", "container"),
		device:              desc("device_memory_bytes", "GPU memory of the device or MIG instance.", "device", "model"),
		sampleAge:           desc("sample_age_seconds", "Time since the devices were last sampled."),
		notEnforcing:        desc("not_enforcing", "1 while the guard cannot enforce the pod's slice."),
		notEnforcingSeconds: desc("not_enforcing_seconds_total", "Time during which the guard could not enforce the pod's slice."),
		utilization: desc("utilization_ratio",
			"Share of the device's multiprocessors that the container kept busy, if the driver reports it.", "container", "device"),
	}
}

// collector makes metrics of the recorder at each scrape.
type collector struct {
	recorder *recorder
	catalog  catalog
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	k := c.catalog
	for _, d := range []*prometheus.Desc{k.used, k.peak, k.byteSeconds, k.slice,
		k.limit, k.terminations, k.warnings, k.notEnforcing, k.notEnforcingSeconds, k.utilization, k.device, k.sampleAge} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	k, r := c.catalog, c.recorder
	for at, ratio := range r.utilization(ctx) {
		send(k.utilization, prometheus.GaugeValue, ratio, at.container, at.device)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.last.IsZero() {
		send(k.sampleAge, prometheus.GaugeValue, now.Sub(r.last).Seconds())
	}
	for _, u := range r.usages {
		if !u.Stale(now) {
			send(k.used, prometheus.GaugeValue, float64(u.UsedBytes), u.Container, u.Device)
		}
		send(k.peak, prometheus.GaugeValue, float64(u.PeakBytes), u.Container, u.Device)
	}
	for at, sum := range r.byteSeconds {
		send(k.byteSeconds, prometheus.CounterValue, sum, at.container, at.device)
	}
	for _, l := range r.limits.Containers {
		send(k.slice, prometheus.GaugeValue, float64(l.SliceBytes), l.Name)
		send(k.limit, prometheus.GaugeValue, float64(l.LimitBytes), l.Name)
		send(k.warnings, prometheus.CounterValue, float64(r.warnings[l.Name]), l.Name)
		for _, result := range guard.Results() { // from the start: increase() sees no growth in a series that begins at 1
			send(k.terminations, prometheus.CounterValue, float64(r.terminations[[2]string{l.Name, string(result)}]), l.Name, string(result))
		}
	}
	for id, d := range r.devices {
		send(k.device, prometheus.GaugeValue, float64(d.TotalBytes), id, d.Model)
	}
	notEnforcing := 0.0
	if r.notEnforcing {
		notEnforcing = 1
	}
	send(k.notEnforcing, prometheus.GaugeValue, notEnforcing)
	send(k.notEnforcingSeconds, prometheus.CounterValue, r.notEnforcingTime.Seconds())
}

// registry has every metric of the guard.
func registry(r *recorder) *prometheus.Registry {
	all := prometheus.NewRegistry()
	all.MustRegister(collector{r, newCatalog()}, r.samples)
	return all
}

// metricsHandler serves the metrics to Prometheus.
func metricsHandler(r *recorder) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(r), promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	return mux
}

// serveMetrics serves until ctx is done. A port that is taken costs the metrics
// and not the guard.
func serveMetrics(ctx context.Context, port int, r *recorder) error {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	server := &http.Server{Handler: metricsHandler(r), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

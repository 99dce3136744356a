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

// catalog is every metric but the histogram of looks. Names and labels are
// stable.
type catalog struct {
	used, peak, byteSeconds, slice, limit *prometheus.Desc
	ends, warnings, blind, blindSeconds   *prometheus.Desc
	utilization, device                   *prometheus.Desc
}

func newCatalog() catalog {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gpuslice_guard_"+name, help, labels, nil)
	}
	return catalog{
		used:         desc("memory_used_bytes", "GPU memory that the container holds on the device.", "container", "device"),
		peak:         desc("memory_peak_bytes", "Most GPU memory that the container was seen to hold on the device.", "container", "device"),
		byteSeconds:  desc("memory_byte_seconds_total", "GPU memory that the container held on the device, by time.", "container", "device"),
		slice:        desc("memory_slice_bytes", "The container's slice of each of its devices.", "container"),
		limit:        desc("memory_limit_bytes", "What the container may hold of each of its devices while there is room.", "container"),
		ends:         desc("ends_total", "Endings, by what came of them.", "container", "result"),
		warnings:     desc("warnings_total", "How often the container's owner was warned.", "container"),
		device:       desc("device_memory_bytes", "GPU memory of the device, or of the MIG instance.", "device"),
		blind:        desc("blind", "1 while the guard cannot hold the pod to its slice."),
		blindSeconds: desc("blind_seconds_total", "How long the guard could not hold the pod to its slice."),
		utilization:  desc("utilization_percent", "Share of the device's multiprocessors that the container kept busy, where the driver attributes it.", "container", "device"),
	}
}

// collector makes metrics of the usage at each scrape.
type collector struct {
	usage   *usage
	catalog catalog
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	k := c.catalog
	for _, d := range []*prometheus.Desc{k.used, k.peak, k.byteSeconds, k.slice, k.limit, k.ends, k.warnings, k.blind, k.blindSeconds, k.utilization, k.device} {
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
	k, u := c.catalog, c.usage
	for at, percent := range u.utilization(ctx) {
		send(k.utilization, prometheus.GaugeValue, float64(percent), at.container, at.device)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range u.watches {
		send(k.used, prometheus.GaugeValue, float64(w.HeldBytes), w.Container, w.Device)
		send(k.peak, prometheus.GaugeValue, float64(w.PeakBytes), w.Container, w.Device)
	}
	for at, sum := range u.byteSeconds {
		send(k.byteSeconds, prometheus.CounterValue, sum, at.container, at.device)
	}
	for _, l := range u.limits.Containers {
		send(k.slice, prometheus.GaugeValue, float64(l.SliceBytes), l.Name)
		send(k.limit, prometheus.GaugeValue, float64(l.LimitBytes), l.Name)
		send(k.warnings, prometheus.CounterValue, float64(u.warnings[l.Name]), l.Name)
		for _, r := range guard.Results() { // from the start: a series that begins at 1 has not grown, says increase()
			send(k.ends, prometheus.CounterValue, float64(u.ends[[2]string{l.Name, string(r)}]), l.Name, string(r))
		}
	}
	for device, bytes := range u.devices {
		send(k.device, prometheus.GaugeValue, float64(bytes), device)
	}
	blind := 0.0
	if u.blind {
		blind = 1
	}
	send(k.blind, prometheus.GaugeValue, blind)
	send(k.blindSeconds, prometheus.CounterValue, u.blindTime.Seconds())
}

// registry holds every metric of the guard.
func registry(u *usage) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{u, newCatalog()}, u.looks)
	return r
}

// metricsHandler serves the usage to Prometheus.
func metricsHandler(u *usage) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(u), promhttp.HandlerOpts{MaxRequestsInFlight: 2}))
	return mux
}

// serveMetrics serves until ctx is done. A port that is taken costs the metrics
// and not the guard.
func serveMetrics(ctx context.Context, port int, u *usage) error {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	server := &http.Server{Handler: metricsHandler(u), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/status"
)

// catalog is every metric but the histogram of samples. Names and labels are
// stable.
type catalog struct {
	used, peak, utilization, idle *prometheus.Desc
	byteSeconds                   *prometheus.Desc
	slice, limit                  *prometheus.Desc
	terminations, warnings        *prometheus.Desc
	notEnforcing                  *prometheus.Desc
	device, unreadable, unmanaged *prometheus.Desc
	pods, sampleAge               *prometheus.Desc
}

func newCatalog() catalog {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gpuslice_agent_"+name, help, labels, nil)
	}
	tenant := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gpuslice_tenant_"+name, help, labels, nil)
	}
	pod, container := []string{"namespace", "pod"}, []string{"namespace", "pod", "container"}
	device := []string{"namespace", "pod", "container", "device"}
	return catalog{
		used: desc("memory_used_bytes", "GPU memory that the container uses on the device. Absent while that cannot be read.", device...),
		peak: desc("memory_peak_bytes", "Highest GPU memory use of the container observed on the device.", device...),
		utilization: tenant("utilization_ratio",
			"Share of the device's multiprocessors that the container kept busy, if the driver reports it.", device...),
		idle: tenant("idle_seconds",
			"Time for which the driver reported less than a percent of use by the container. Absent while it reports more, or reports no use.",
			container...),
		byteSeconds:  desc("memory_byte_seconds_total", "GPU memory that the container used on the device, in bytes times seconds.", device...),
		slice:        desc("memory_slice_bytes", "GPU memory of the container's slice on each of its devices.", container...),
		limit:        desc("memory_limit_bytes", "GPU memory that the container may use on each device while there is room.", container...),
		terminations: desc("terminations_total", "Attempts to terminate processes, by result.", append(container, "result")...),
		warnings:     desc("warnings_total", "Warnings to the container's owner.", container...),
		notEnforcing: desc("not_enforcing", "1 while the agent cannot enforce the pod's slice.", pod...),
		device:       desc("device_memory_bytes", "GPU memory of the device or MIG instance.", "device", "model"),
		unreadable:   desc("device_unreadable", "1 while the device cannot be read.", "device"),
		unmanaged: desc("unmanaged_memory_bytes",
			"GPU memory of processes on the device in no pod whose slices the agent enforces.", "device"),
		pods:      desc("pods", "Pods of the node whose slices the agent enforces."),
		sampleAge: desc("sample_age_seconds", "Time since the devices were last sampled."),
	}
}

// collector makes metrics of the recorder at each scrape.
type collector struct {
	recorder *status.Recorder
	catalog  catalog
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	k := c.catalog
	for _, d := range []*prometheus.Desc{k.used, k.peak, k.byteSeconds, k.utilization,
		k.idle, k.slice, k.limit, k.terminations, k.warnings, k.notEnforcing, k.device, k.unreadable, k.unmanaged, k.pods, k.sampleAge} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s, now, at := sender{c.catalog, out}, time.Now(), c.recorder.Snapshot()
	for place, ratio := range at.Busy {
		s.gauge(s.utilization, ratio, place.Namespace, place.Pod, place.Container, place.Device)
	}
	for i := range at.Pods {
		s.pod(&at.Pods[i], now)
	}
	s.gauge(s.pods, float64(len(at.Pods)))
	if !at.Last.Taken.IsZero() {
		s.gauge(s.sampleAge, now.Sub(at.Last.Taken).Seconds())
	}
	for _, d := range at.Last.Devices {
		if d.TotalBytes > 0 {
			s.gauge(s.device, float64(d.TotalBytes), d.ID, d.Model)
		}
		s.gauge(s.unreadable, indicator(d.Fault != ""), d.ID)
		s.gauge(s.unmanaged, float64(c.recorder.Unmanaged(d)), d.ID)
	}
}

// sender sends metrics of the catalog.
type sender struct {
	catalog
	out chan<- prometheus.Metric
}

func (s sender) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s sender) counter(d *prometheus.Desc, value float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

func (s sender) pod(p *status.Pod, now time.Time) {
	namespace, name := p.Pod.Namespace, p.Pod.Name
	if !p.Sampled.IsZero() {
		s.gauge(s.notEnforcing, indicator(p.NotEnforcing != ""), namespace, name)
	}
	for _, u := range p.Usages {
		if !u.Stale(now) {
			s.gauge(s.used, float64(u.UsedBytes), namespace, name, u.Container, u.Device)
		}
		s.gauge(s.peak, float64(u.PeakBytes), namespace, name, u.Container, u.Device)
	}
	for container, d := range p.Idle.Idle() {
		s.gauge(s.idle, d.Seconds(), namespace, name, container)
	}
	for at, bytes := range p.ByteSeconds {
		s.counter(s.byteSeconds, bytes, namespace, name, at[0], at[1])
	}
	for _, l := range p.Pod.Limits.Containers {
		s.gauge(s.slice, float64(l.SliceBytes), namespace, name, l.Name)
		s.gauge(s.limit, float64(l.LimitBytes), namespace, name, l.Name)
		s.counter(s.warnings, float64(p.Warnings[l.Name]), namespace, name, l.Name)
		for _, result := range guard.Results() { // from the start: increase() sees no growth in a series that begins at 1
			s.counter(s.terminations, float64(p.Terminations[[2]string{l.Name, string(result)}]), namespace, name, l.Name, string(result))
		}
	}
}

func indicator(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

// newSamples returns the histogram of how long samples take.
func newSamples() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gpuslice_agent_sample_duration_seconds",
		Help: "Time that one reading of all devices took.", Buckets: []float64{.0001, .001, .005, .01, .05, .1, .5, 1, 2}})
}

// registry has every metric of the agent.
func registry(r *status.Recorder, samples prometheus.Collector) *prometheus.Registry {
	all := prometheus.NewRegistry()
	all.MustRegister(collector{r, newCatalog()}, samples)
	return all
}

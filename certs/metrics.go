package certs

import (
	"bytes"
	"crypto/tls"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the figures of a Source.
type Metrics struct {
	leaf, authority prometheus.Gauge
	rotations       *prometheus.CounterVec
	mismatches      prometheus.Counter
	unusable        prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		leaf: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gpuslice_certificate_expiry_timestamp_seconds", Help: "When the serving certificate expires, or 0 if there is none.",
		}),
		authority: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gpuslice_certificate_authority_expiry_timestamp_seconds",
			Help: "When the first authority in a live caBundle that verifies the serving certificate expires.",
		}),
		rotations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gpuslice_certificate_rotations_total", Help: "Serving certificates replaced, by whether the same authority signed again.",
		}, []string{"authority"}),
		mismatches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gpuslice_ca_bundle_mismatches_total", Help: "Webhook entries found not to trust the serving certificate.",
		}),
		unusable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gpuslice_certificate_files_unusable_total", Help: "Reads of mounted files that are not a certificate with its key.",
		}),
	}
	r.MustRegister(m.leaf, m.authority, m.rotations, m.mismatches, m.unusable)
	m.rotations.WithLabelValues("same")
	m.rotations.WithLabelValues("another")
	return m
}

// observe sets the served certificate's expiry and the end of its trust.
func (m *Metrics) observe(served *tls.Certificate, f *finding) {
	m.leaf.Set(float64(served.Leaf.NotAfter.Unix()))
	if !f.ends.IsZero() {
		m.authority.Set(float64(f.ends.Unix()))
	}
}

func (m *Metrics) mismatched(f *finding) {
	if f != nil {
		m.mismatches.Add(float64(len(f.rejections)))
	}
}

// rotated counts a certificate that took the place of another.
func (m *Metrics) rotated(before, after *tls.Certificate) {
	authority := "same"
	if !bytes.Equal(before.Leaf.AuthorityKeyId, after.Leaf.AuthorityKeyId) {
		authority = "another"
	}
	m.rotations.WithLabelValues(authority).Inc()
}

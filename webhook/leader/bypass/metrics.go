package bypass

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are the metrics of bypassed namespaces. A replica that does not lead has no series.
type gauges struct {
	info, end *prometheus.GaugeVec
	active    map[string]time.Time // by namespace, when the bypass ends, as the series are
}

func newGauges() *gauges {
	return &gauges{
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gpuslice_bypass_info", Help: "1 for each namespace with a bypass.",
		}, []string{"namespace"}),
		end: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gpuslice_bypass_end_timestamp_seconds",
			Help: "When the bypass of the namespace ends; a past time means that it could not be ended.",
		}, []string{"namespace"}),
	}
}

// set replaces the series by the series of these bypasses.
func (g *gauges) set(active map[string]time.Time) {
	for name := range g.active {
		if _, ok := active[name]; !ok {
			g.info.DeleteLabelValues(name)
			g.end.DeleteLabelValues(name)
		}
	}
	g.active = active
	for name, until := range active {
		g.info.WithLabelValues(name).Set(1)
		g.end.WithLabelValues(name).Set(float64(until.Unix()))
	}
}

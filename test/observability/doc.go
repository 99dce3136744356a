// Package observability holds what deploy/observability ships against what gpuslice serves.
//
// The one idea: a dashboard and an alert are code that nobody calls in a test unless somebody does. So promtool reads the
// alerts and plays them, every metric and label that an expression names has to stand on a page that is written from the
// registries, and on a real node Prometheus reads the webhook and the guards as the PodMonitors say, evaluates every
// expression of the dashboard, and the picture of it is drawn.
package observability

// Package picture draws a Grafana dashboard as one SVG, from what Prometheus answers to its expressions.
//
// It stands in for a screenshot: the panels, their titles, places, expressions and legends are the dashboard's own, and the
// figures are those of a run. It knows the three kinds of panels that the dashboard has, and no more of Grafana.
package picture

// Package source reads observations of workloads' GPU memory: from CSV, from the JSON of Prometheus' range queries, and
// from Prometheus itself. Samples are summed up as they are read (sizing.History), so that memory grows with workloads
// and hours, not with samples.
package history

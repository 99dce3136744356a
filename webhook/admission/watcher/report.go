package watcher

import (
	"maps"
	"slices"

	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// StateReport reports the latest snapshot, and the ResourceQuotas.
func (w *Watcher) StateReport() cluster.StateReport {
	snapshot := w.snapshot.Load()
	if snapshot == nil {
		return cluster.StateReport{}
	}
	report := snapshot.StateReport()
	for _, namespace := range slices.Sorted(maps.Keys(snapshot.Tenants())) {
		report.Tenants = append(report.Tenants, snapshot.TenantState(w.namespaces.cached(namespace)))
	}
	report.ResourceQuotas = w.QuotaStatuses()
	return report
}

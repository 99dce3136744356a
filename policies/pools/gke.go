package pools

import (
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// Labels of GKE, whose nodes have no GPU feature discovery of their own.
const (
	labelGKEAccelerator = "cloud.google.com/gke-accelerator"
	labelGKEPartition   = "cloud.google.com/gke-gpu-partition-size"
	labelGKESharing     = "cloud.google.com/gke-gpu-sharing-strategy"
	labelGKEClients     = "cloud.google.com/gke-max-shared-clients-per-gpu"
)

// readGKE reads GKE's labels. They tell how GPUs are shared, and never how much memory one has.
func (r *nodeReader) readGKE() {
	r.pool.Product = r.text(labelGKEAccelerator)
	r.pool.MIGProfile = r.text(labelGKEPartition)
	r.require(labelGKEAccelerator, labelGKEPartition, labelGKESharing, labelGKEClients)
	word := r.text(labelGKESharing)
	strategy := strategies.Labeled(strategies.LabelsGKE, word)
	switch clients, _ := r.number(labelGKEClients, int64(strategy.MaxReplicas)); {
	case word == "":
		r.pool.Strategy, r.pool.Replicas = unshared(r.pool.MIGProfile).Name, 1
	case strategy.Name == "":
		r.unknown("label %s: sharing by %s on GKE is not known to this build", labelGKESharing, message.Quote(word))
	case r.pool.MIGProfile != "" && !strategy.OnInstances:
		r.unknown("label %s says %s, which is not shared on a MIG instance", labelGKESharing, word)
	case clients < 2:
		r.unknown("label %s does not tell how many share one of its GPUs", labelGKEClients)
	default:
		r.pool.Strategy, r.pool.Replicas = strategy.Name, int(clients)
		if strategy.MPS {
			r.pool.MPSProvider = strategies.ProviderLabeled(strategies.LabelsGKE).Name
		}
	}
}

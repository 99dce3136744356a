package pools

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// Labels of GKE, whose nodes have no GPU feature discovery of their own.
const (
	labelGKEAccelerator = "cloud.google.com/gke-accelerator"
	labelGKEPartition   = "cloud.google.com/gke-gpu-partition-size"
	labelGKESharing     = "cloud.google.com/gke-gpu-sharing-strategy"
	labelGKEClients     = "cloud.google.com/gke-max-shared-clients-per-gpu"
	labelGKECount       = "cloud.google.com/gke-accelerator-count"
)

// gkeMemory is the memory of GKE's accelerators as the driver reports it, the least that is seen where drivers differ.
// Policy overrides it: a declared pool has its own deviceMemory.
var gkeMemory = map[string]quantity.MiB{
	"nvidia-tesla-p4": 7611, "nvidia-tesla-t4": 15109, "nvidia-tesla-p100": 16280, "nvidia-tesla-v100": 16160, "nvidia-l4": 23034,
	"nvidia-tesla-a100": 40536, "nvidia-a100-80gb": 81251, "nvidia-h100-80gb": 81559, "nvidia-h100-mega-80gb": 81559,
	"nvidia-h200-141gb": 143771, "nvidia-b200": 183359, "nvidia-rtx-pro-6000": 97887,
}

// readGKE reads GKE's labels. They show how GKE's own device plugin shares GPUs; the memory follows from the accelerator's name.
func (r *nodeReader) readGKE(node *corev1.Node) {
	r.pool.Product = r.text(labelGKEAccelerator)
	r.pool.DeviceMemory = gkeMemory[r.pool.Product]
	r.pool.MIGProfile = r.text(labelGKEPartition)
	r.require(labelGKEAccelerator, labelGKEPartition, labelGKESharing, labelGKEClients, labelGKENoPlugin)
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
	if r.labels[labelGKENoPlugin] == "true" {
		r.unknown("label %s: another device plugin than GKE's shares its GPUs, and no label shows how: deploy GPU feature discovery, or declare the pool",
			labelGKENoPlugin)
	}
	name := corev1.ResourceName(r.pool.Resource)
	offered := max(units(node.Status.Capacity, name), units(node.Status.Allocatable, name))
	count, known := r.number(labelGKECount, maxDevices)
	if known && r.pool.MIGProfile == "" && r.pool.Replicas > 0 && offered > count*int64(r.pool.Replicas) {
		r.unknown("the node has %d of %s, more than its labels show (%s x clients): shared by something else than GKE's device plugin?",
			offered, r.pool.Resource, labelGKECount)
	}
}

package policies

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
	switch sharing := r.text(labelGKESharing); sharing {
	case "time-sharing":
		replicas, _ := r.number(labelGKEClients, maxReplicas)
		r.pool.Strategy, r.pool.Replicas = timeSlicing().Name, int(replicas)
		if replicas < 2 {
			r.unknown("label %s does not tell how many share one of its GPUs", labelGKEClients)
		}
	case "mps":
		r.readGKEMPS()
	case "":
		r.pool.Strategy, r.pool.Replicas = exclusive().Name, 1
		if r.pool.MIGProfile != "" {
			r.pool.Strategy = mig().Name
		}
	default:
		r.unknown("label %s: sharing by %s on GKE is not known to this build", labelGKESharing, quoteShort(sharing))
	}
}

// readGKEMPS reads a node whose GPUs are shared by GKE's own MPS daemon.
func (r *nodeReader) readGKEMPS() {
	clients, _ := r.number(labelGKEClients, mostReplicas)
	switch {
	case r.pool.MIGProfile != "":
		r.unknown("label %s says mps, which is not shared on a MIG instance", labelGKESharing)
	case clients < 2:
		r.unknown("label %s does not tell how many share one of its GPUs", labelGKEClients)
	default:
		r.pool.Strategy, r.pool.Replicas, r.pool.MPSProvider = mps().Name, int(clients), MPSGKE
	}
}

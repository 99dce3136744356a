package doctor

// checkMIG reports where devices are partitioned, and where they could not be.
func checkMIG(f *Facts) []Finding {
	on := newFinding(OK, "MIG is on: an instance is a slice that the hardware holds")
	failed := newFinding(Problem, "the MIG manager could not partition a node's devices as configured").
		WithRemedy(
			"kubectl -n gpu-operator logs -l app=nvidia-mig-manager, and set the label nvidia.com/mig.config to a layout that the devices have")
	empty := newFinding(Warning, "MIG is on, and the node offers no instance").
		WithRemedy("kubectl label node NODE --overwrite nvidia.com/mig.config=all-1g.10gb with the GPU Operator, or nvidia-smi mig -cgi 1g.10gb -C on the node")
	for _, n := range f.Nodes {
		where, strategy := object("node", "", n.Name), n.Labels["nvidia.com/mig.strategy"]
		if state := n.Labels["nvidia.com/mig.config.state"]; state == "failed" {
			failed = failed.With(where, "metadata.labels[nvidia.com/mig.config.state]", state)
		}
		switch {
		case strategy == "" || strategy == "none":
		case strategy == "mixed" && !offersInstances(n) && !offersWholeGPUs(n):
			empty = empty.With(where, "metadata.labels[nvidia.com/mig.strategy]", strategy)
		default:
			on = on.With(where, "metadata.labels[nvidia.com/mig.strategy]", strategy)
		}
	}
	return withEvidence(failed, empty, on)
}

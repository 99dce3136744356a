package doctor

import (
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// checkMIG reports where devices are partitioned, and where they could not be.
func checkMIG(f *Facts) []Finding {
	on := newFinding(OK, "MIG is on: an instance is a slice that the hardware holds")
	failed := newFinding(Problem, "the MIG manager could not partition a node's devices as configured").
		WithRemedy(
			"kubectl -n gpu-operator logs -l app=nvidia-mig-manager, and set the label nvidia.com/mig.config to a layout that the devices have")
	empty := newFinding(Warning, "the MIG strategy is mixed, and the node offers neither instances nor GPUs").
		WithRemedy("kubectl label node NODE --overwrite nvidia.com/mig.config=all-1g.10gb with the GPU Operator, or nvidia-smi mig -cgi 1g.10gb -C on the node")
	for _, n := range f.Nodes {
		where, strategy := object("node", "", n.Name), n.Labels["nvidia.com/mig.strategy"]
		if state := n.Labels["nvidia.com/mig.config.state"]; state == "failed" {
			failed = failed.With(where, "metadata.labels[nvidia.com/mig.config.state]", state)
		}
		switch product := n.Labels["nvidia.com/gpu.product"]; {
		case offersInstances(n):
			on = on.With(where, "status.allocatable", nvidia.MIGPrefix+"...")
		case strings.Contains(product, "-MIG-") && !strings.HasSuffix(product, "-MIG-INVALID") && len(f.offered(n)) > 0:
			on = on.With(where, "metadata.labels[nvidia.com/gpu.product]", product)
		case strategy == "mixed" && n.Labels["nvidia.com/mig.capable"] != "false" && len(f.offered(n)) == 0:
			empty = empty.With(where, "metadata.labels[nvidia.com/mig.strategy]", strategy)
		}
	}
	return withEvidence(failed, empty, on)
}

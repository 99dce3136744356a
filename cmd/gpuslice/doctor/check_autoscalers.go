package doctor

import (
	"encoding/json"
	"fmt"
	"slices"
)

// acceleratorLabels are those by which Cluster Autoscaler 1.36 knows nodes with GPUs: what its cloud providers return as GPULabel.
var acceleratorLabels = []string{
	"accelerator", "aliyun.accelerator/nvidia_name", "baidu/nvidia_name", "bke.bizflycloud.vn/gpu-node", "cherryservers.com/gpu",
	"civo.com/gpu-node", "cloud.brightbox.com/gpu-node", "cloud.digitalocean.com/gpu-node", "cloud.google.com/gke-accelerator",
	"cloud.tencent.com/tke-accelerator", "cluster-api/accelerator", "hcloud/gpu-node", "k8s.amazonaws.com/accelerator", "k8s.scw.cloud/gpu",
	"kubernetes.azure.com/accelerator", "magnum.openstack.org/gpu", "node.kubernetes.ovhcloud.com/gpu",
}

// checkAcceleratorLabels looks for nodes that Cluster Autoscaler waits for: by their label they have GPUs,
// and none has the one name that it knows.
func checkAcceleratorLabels(f *Facts) []Finding {
	found := newFinding(Warning,
		"Cluster Autoscaler, where it runs, takes these nodes for unready: it knows GPUs by the name %s alone (kubernetes/autoscaler #8095)",
		wholeGPU).
		WithRemedy("remove the label from the node group, or keep the name %s for shares", wholeGPU)
	for _, n := range f.Nodes {
		others := f.offered(n)
		if len(others) == 0 || offersWholeGPUs(n) {
			continue
		}
		for _, label := range acceleratorLabels {
			if value, ok := n.Labels[label]; ok {
				found = found.With(object("node", "", n.Name), "metadata.labels["+label+"]", value).
					With(object("node", "", n.Name), "status.allocatable", others[0])
			}
		}
	}
	return withEvidence(found)
}

// nodePoolLabel is on each node that Karpenter started.
const nodePoolLabel = "karpenter.sh/nodepool"

// checkNodeOverlays looks for NodePools whose nodes offer a resource that instance types lack and no NodeOverlay adds.
func checkNodeOverlays(f *Facts) []Finding {
	if f.unread(whatOverlays) {
		return nil
	}
	found := newFinding(Warning, "Karpenter starts no node for pods that need these resources: no NodeOverlay has them in its capacity").
		WithRemedy("apply a NodeOverlay for the NodePool: deploy/recipes/karpenter.md")
	seen := map[string]bool{}
	for _, n := range f.Nodes {
		pool := n.Labels[nodePoolLabel]
		for _, name := range f.offered(n) {
			if pool == "" || name == string(wholeGPU) || slices.Contains(f.Overlaid, name) || seen[pool+" "+name] {
				continue
			}
			seen[pool+" "+name] = true
			found = found.With(object("nodepool", "", pool), "status.allocatable of its nodes", name)
		}
	}
	return withEvidence(found)
}

// addOverlay adds the resources of a NodeOverlay that is JSON.
func (f *Facts) addOverlay(raw json.RawMessage) error {
	var overlay struct {
		Spec struct {
			Capacity map[string]any `json:"capacity"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &overlay); err != nil {
		return fmt.Errorf("read NodeOverlay: %w", err)
	}
	for name := range overlay.Spec.Capacity {
		if !slices.Contains(f.Overlaid, name) {
			f.Overlaid = append(f.Overlaid, name)
		}
	}
	return nil
}

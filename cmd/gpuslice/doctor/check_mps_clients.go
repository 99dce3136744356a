package doctor

import (
	"strconv"

	plugin "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// maxMPSClients is how many clients one MPS daemon serves on a device.
const maxMPSClients = 48

// maxOldMPSClients is how many NVIDIA's daemon for Kubernetes allows on a device before compute capability 7.5, a V100 included.
const maxOldMPSClients = 16

// checkMPSClients looks for devices with more replicas than an MPS daemon has clients.
func checkMPSClients(f *Facts) []Finding {
	found := newFinding(Problem,
		"a device has more replicas than an MPS daemon has clients: NVIDIA's daemon does not start, and with another daemon some pods do not").
		WithRemedy("configure at most %d replicas a device", maxMPSClients)
	old := newFinding(Problem, "a GPU before compute capability 7.5, such as a V100, has more replicas than NVIDIA's MPS control daemon (0.19) allows there: "+
		"the daemon does not start, and the device plugin offers nothing").
		WithRemedy("configure at most %d replicas for these nodes, or share them by timeSlicing", maxOldMPSClients)
	settings := f.settings(nvidia.IsPluginConfig)
	for _, s := range settings {
		c, _, err := nvidia.ParsePluginConfig(s.Text)
		if err != nil || c.Sharing.SharingStrategy() != plugin.SharingStrategyMPS {
			continue
		}
		for _, r := range c.Sharing.MPS.Resources {
			switch {
			case r.Replicas > maxMPSClients:
				found = found.With(s.Object, s.field("sharing.mps.resources[].replicas"), decimal(r.Replicas))
			case r.Replicas > maxOldMPSClients:
				for _, n := range f.configuredBy(s) {
					if before75(n) {
						old = old.With(s.Object, s.field("sharing.mps.resources[].replicas"), decimal(r.Replicas)).
							With(object("node", "", n.Name), "compute capability", capability(n))
					}
				}
			}
		}
	}
	pools := f.snapshot().Pools()
	for i := range pools {
		if p := &pools[i]; p.MPSProvider != "" && p.Replicas > maxMPSClients {
			found = found.With("pool/"+p.Name, "replicas", decimal(p.Replicas))
		}
	}
	for _, n := range f.Nodes {
		replicas, err := strconv.Atoi(n.Labels["nvidia.com/gpu.replicas"])
		if err == nil && len(settings) == 0 && // else labels may be of an older configuration
			n.Labels["nvidia.com/gpu.sharing-strategy"] == "mps" && replicas > maxOldMPSClients && before75(n) {
			old = old.With(object("node", "", n.Name), "metadata.labels[nvidia.com/gpu.replicas]", decimal(replicas)).
				With(object("node", "", n.Name), "compute capability", capability(n))
		}
	}
	return withEvidence(found, old)
}

// capability is the compute capability of a node's GPUs by its labels; ".": unknown.
func capability(n *corev1.Node) string {
	return n.Labels["nvidia.com/gpu.compute.major"] + "." + n.Labels["nvidia.com/gpu.compute.minor"]
}

func before75(n *corev1.Node) bool {
	value, err := strconv.ParseFloat(capability(n), 64)
	return err == nil && value < 7.5
}

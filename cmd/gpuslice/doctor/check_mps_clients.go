package doctor

import (
	plugin "github.com/NVIDIA/k8s-device-plugin/api/config/v1"

	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
)

// maxMPSClients is how many clients one MPS daemon serves on a device.
const maxMPSClients = 48

// checkMPSClients looks for devices with more replicas than an MPS daemon has clients.
func checkMPSClients(f *Facts) []Finding {
	found := newFinding(Problem,
		"a device has more replicas than an MPS daemon has clients: NVIDIA's daemon does not start, and with another daemon some pods do not").
		WithRemedy("configure at most %d replicas a device", maxMPSClients)
	for _, s := range f.settings(nvidia.IsPluginConfig) {
		c, _, err := nvidia.ParsePluginConfig(s.Text)
		if err != nil || c.Sharing.SharingStrategy() != plugin.SharingStrategyMPS {
			continue
		}
		for _, r := range c.Sharing.MPS.Resources {
			if r.Replicas > maxMPSClients {
				found = found.With(s.Object, s.field("sharing.mps.resources[].replicas"), decimal(r.Replicas))
			}
		}
	}
	pools := f.snapshot().Pools()
	for i := range pools {
		if p := &pools[i]; p.MPSProvider != "" && p.Replicas > maxMPSClients {
			found = found.With("pool/"+p.Name, "replicas", decimal(p.Replicas))
		}
	}
	return withEvidence(found)
}

package strategies

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// gke is the daemon of GKE's device plugin, which brings the pipe and the limits.
func gke() Provider {
	return Provider{
		Name:           "gke",
		Plugin:         "GKE's device plugin",
		Daemon:         "GKE's MPS",
		LabeledBy:      LabelsGKE,
		HoldsToReplica: true,
		HostIPC:        true,
		Pipe:           func(MPSSpec, string) string { return "/tmp/nvidia-mps" },
		NoParts: "GKE's device plugin offers parts and whole GPUs as nvidia.com/gpu, so neither the scheduler nor a ResourceQuota could tell them apart; " +
			"make a node pool for each size by max-shared-clients-per-gpu, or run NVIDIA's device plugin there (label gke-no-default-nvidia-gpu-device-plugin: \"true\") with renameByDefault: true",
		Requires: gkeRequires,
	}
}

// gkeRequires denies a pod that may not share the node's IPC namespace, as clients of GKE's daemon must: without it they
// run beside the daemon, with the whole card.
func gkeRequires(p *Placement) *api.Violation {
	if level := p.Namespace.Labels[podspec.LabelPodSecurity]; level == "baseline" || level == "restricted" {
		return &api.Violation{Rule: api.RuleStrategy, Reason: "MPS on GKE forbidden by Pod Security", Detail: fmt.Sprintf(
			"the MPS daemon of pool %s is reached through the node's IPC namespace (hostIPC), and namespace %q enforces Pod Security %q, which forbids it; "+
				"allow another strategy, or label the namespace %s: privileged", p.Pool, p.Namespace.Name, level, podspec.LabelPodSecurity)}
	}
	return nil
}

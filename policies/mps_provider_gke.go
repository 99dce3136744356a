package policies

import "fmt"

// mpsGKE is the daemon of GKE's device plugin, which brings the pipe and the limits.
func mpsGKE() MPSProvider {
	return MPSProvider{
		Name:           "gke",
		Plugin:         "GKE's device plugin",
		Daemon:         "GKE's MPS",
		LabeledBy:      LabelsGKE,
		HoldsToReplica: true,
		HostIPC:        true,
		Pipe:           func(MPSSpec, string) string { return "/tmp/nvidia-mps" },
		Requires:       gkeRequires,
	}
}

// gkeRequires denies a pod that may not share the node's IPC namespace, as clients of GKE's daemon must: without it they
// run beside the daemon, with the whole card.
func gkeRequires(p *Placement) *Violation {
	if level := p.Namespace.Labels[LabelPodSecurity]; level == "baseline" || level == "restricted" {
		return &Violation{RuleStrategy, "MPS on GKE forbidden by Pod Security", fmt.Sprintf(
			"the MPS daemon of pool %s is reached through the node's IPC namespace (hostIPC), and namespace %q enforces Pod Security %q, which forbids it; "+
				"allow another strategy, or label the namespace %s: privileged", p.Pool, p.Namespace.Name, level, LabelPodSecurity)}
	}
	return nil
}

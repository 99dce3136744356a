package policies

import "fmt"

// gkePipe is where GKE's device plugin mounts the pipe of its MPS daemon.
const gkePipe = "/tmp/nvidia-mps"

// gkeRequires refuses a pod that may not share the node's IPC namespace, as clients of GKE's daemon must: without it they
// run beside the daemon, with the whole card.
func gkeRequires(in *Input, p *Pool) *Violation {
	if level := in.Namespace.Labels[LabelPodSecurity]; level == "baseline" || level == "restricted" {
		return &Violation{RuleStrategy, "MPS on GKE forbidden by Pod Security", fmt.Sprintf(
			"the MPS daemon of pool %s is reached through the node's IPC namespace (hostIPC), and namespace %q enforces Pod Security %q, which forbids it; "+
				"allow another strategy, or label the namespace %s: privileged", p.Name, in.Namespace.Name, level, LabelPodSecurity)}
	}
	return nil
}

// hostIPC gives the pod the node's IPC namespace where its MPS daemon needs that, and says so. Where its author did, the
// promise says that it is needed: Verify knows no pools.
func (w *promiseWriter) hostIPC(c *candidate) {
	switch {
	case c.pool().MPSProvider != MPSGKE:
	case w.in.Pod.Spec.HostIPC:
		w.promise.Pod.NeedsHostIPC = true
	default:
		w.promise.Pod.HostIPC = true
		w.note("the pod shares the node's IPC namespace, which GKE's MPS needs: it can reach the shared memory of others there")
	}
}

// people names the provider for people.
func (p MPSProvider) people() string {
	if p == MPSGKE {
		return "GKE's device plugin"
	}
	return "NVIDIA's device plugin"
}

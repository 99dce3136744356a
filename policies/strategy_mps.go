package policies

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
)

// mps shares a device through a CUDA MPS daemon, which holds each client process to a pinned memory limit and a
// percentage of the multiprocessors.
//
// Three providers: NVIDIA's device plugin brings pipe, shm and the pipe's variable in its Allocate answer, so nothing
// of them may be written here (a wrong pipe makes the client fall back to the whole card without an error). A daemon
// of the cluster's own is reached through hostPath mounts. On GKE the plugin brings pipe and limits, and the pod has to
// share the node's IPC namespace.
func mps() Strategy {
	return Strategy{
		Name:     "mps",
		Doc:      "a CUDA MPS daemon holds each process to its memory limit and thread percentage",
		View:     frameworks.ViewLimitedFree,
		Tier:     TierMPS,
		Inject:   mpsInjection,
		Requires: mpsRequires,
		Note:     mpsNote,
	}
}

// mpsNote says what no limit of MPS holds: all containers on a device are clients of one daemon, whatever namespace they
// are of, and NVIDIA's plugin runs one for each node. Only nodes keep tenants apart, by their trust domain.
func mpsNote(in *Input, p *Pool) string {
	if p.TrustDomain != "" && slices.Contains(in.Policy.MPS.TrustDomains, p.TrustDomain) {
		return ""
	}
	return "it shares an MPS daemon with other namespaces, and a fatal fault of one client can end all others; to keep tenants apart, give nodes a trust domain (label " +
		LabelTrustDomain + ") and list it in the policy's mps.trustDomains"
}

func mpsInjection(g SliceGrant) Injection {
	in := driverLimit(g)
	if g.Limit > 0 {
		in.Env = append(in.Env, Variable{VarMPSPinned, pinnedLimit(g)})
	}
	if g.Compute > 0 {
		in.Env = append(in.Env, Variable{VarMPSThreads, formatInt(int64(g.Compute))})
	}
	if g.Pool.MPSProvider != MPSHostDaemon {
		return in
	}
	in.Env = append(in.Env, Variable{VarMPSPipe, g.MPS.PipeDirectory}, Variable{VarMPSLog, g.MPS.LogDirectory})
	in.mount("gpuslice-mps-pipe", g.MPS.PipeDirectory, g.MPS.PipeDirectory)
	in.mount("gpuslice-mps-log", g.MPS.LogDirectory, g.MPS.LogDirectory)
	if g.MPS.ShmDirectory != "" && !g.HasShm {
		in.mount("gpuslice-mps-shm", g.MPS.ShmDirectory, "/dev/shm")
	}
	return in
}

// pinnedLimit is the limit of one client process: the container's, divided by the processes that share it. Devices are
// named by the ordinals that the container sees; one entry too many would drop every limit of the daemon.
func pinnedLimit(g SliceGrant) string {
	entries := make([]string, g.GPUs)
	for i := range entries {
		entries[i] = fmt.Sprintf("%d=%dM", i, int64(g.Limit)/int64(max(g.Processes, 1)))
	}
	return strings.Join(entries, ",")
}

func (in *Injection) mount(volume, hostPath, containerPath string) {
	directory := corev1.HostPathDirectory // a missing daemon fails the container instead of giving it the whole card
	in.Volumes = append(in.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: hostPath, Type: &directory},
	}})
	in.Mounts = append(in.Mounts, corev1.VolumeMount{Name: volume, MountPath: containerPath})
}

func mpsRequires(in *Input, p *Pool, c *corev1.Container) *Violation {
	policy := in.Policy.MPS
	if p.TrustDomain != "" && len(policy.TrustDomains) > 0 && !slices.Contains(policy.TrustDomains, p.TrustDomain) {
		return &Violation{RuleStrategy, "MPS trust domain", fmt.Sprintf(
			"pool %s belongs to trust domain %q, policy %s shares MPS daemons with %q only; ask for another strategy, or for the domain in the policy's mps.trustDomains", p.Name, p.TrustDomain, in.Policy.Name, policy.TrustDomains)}
	}
	if p.MPSProvider == MPSGKE {
		return gkeRequires(in, p)
	}
	if p.MPSProvider != MPSHostDaemon {
		return nil
	}
	if level := in.Namespace.Labels[LabelPodSecurity]; level == "baseline" || level == "restricted" {
		return &Violation{RuleStrategy, "MPS mounts forbidden by Pod Security", fmt.Sprintf(
			"the MPS daemon of pool %s is reached through hostPath mounts, and namespace %q enforces Pod Security %q, which forbids them; "+
				"allow another strategy, label the namespace %s: privileged, or run MPS under NVIDIA's device plugin",
			p.Name, in.Namespace.Name, level, LabelPodSecurity)}
	}
	return mpsUser(in, p, c)
}

// mpsUser refuses a user that the daemon does not serve: such a client waits for ever, or runs without MPS.
func mpsUser(in *Input, p *Pool, c *corev1.Container) *Violation {
	if len(in.Policy.MPS.Users) == 0 {
		return nil
	}
	as := "says none"
	if user := runAsUser(&in.Pod.Spec, c); user != nil {
		if slices.Contains(in.Policy.MPS.Users, *user) {
			return nil
		}
		as = fmt.Sprintf("runs as %d", *user)
	}
	return &Violation{RuleStrategy, "MPS user", fmt.Sprintf("the MPS daemon of pool %s serves the users %v, and container %q %s; set its securityContext.runAsUser to one of them",
		p.Name, in.Policy.MPS.Users, c.Name, as)}
}

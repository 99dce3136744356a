package strategies

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// hostDaemon is a daemon of the cluster's own, whose directories are hostPaths.
func hostDaemon() Provider {
	return Provider{
		Name:             "host-daemon",
		Plugin:           "the node",
		Daemon:           "the node's MPS",
		TerminatesSafely: true, // through the daemon's control program
		Pipe:             func(m MPSSpec, _ string) string { return m.PipeDirectory },
		Client:           hostDaemonClient,
		Requires:         hostDaemonRequires,
	}
}

func hostDaemonClient(m MPSSpec, c *corev1.Container) Injection {
	in := Injection{Env: []podspec.Variable{{Name: nvidia.EnvMPSPipe, Value: m.PipeDirectory},
		{Name: nvidia.EnvMPSLog, Value: m.LogDirectory}}}
	in.mount("gpuslice-mps-pipe", m.PipeDirectory, m.PipeDirectory)
	in.mount("gpuslice-mps-log", m.LogDirectory, m.LogDirectory)
	if m.ShmDirectory != "" && c != nil && !podspec.MountsShm(c) {
		in.mount("gpuslice-mps-shm", m.ShmDirectory, "/dev/shm")
	}
	return in
}

func (in *Injection) mount(volume, hostPath, containerPath string) {
	directory := corev1.HostPathDirectory // a missing daemon fails the container instead of giving it the whole card
	in.Volumes = append(in.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: hostPath, Type: &directory},
	}})
	in.Mounts = append(in.Mounts, corev1.VolumeMount{Name: volume, MountPath: containerPath})
}

func hostDaemonRequires(p *Placement) *api.Violation {
	if level := p.Namespace.Labels[podspec.LabelPodSecurity]; level == "baseline" || level == "restricted" {
		return &api.Violation{Rule: api.RuleStrategy, Reason: "MPS mounts forbidden by Pod Security", Detail: fmt.Sprintf(
			"the MPS daemon of pool %s is reached through hostPath mounts, and namespace %q enforces Pod Security %q, which forbids them; "+
				"allow another strategy, label the namespace %s: privileged, or run MPS under NVIDIA's device plugin",
			p.Pool, p.Namespace.Name, level, podspec.LabelPodSecurity)}
	}
	return hostDaemonUser(p)
}

// hostDaemonUser denies a user that the daemon does not serve: such a client waits for ever, or runs without MPS.
func hostDaemonUser(p *Placement) *api.Violation {
	if len(p.MPS.Users) == 0 {
		return nil
	}
	as := "says none"
	if user := podspec.RunAsUser(p.Pod, p.Container); user != nil {
		if slices.Contains(p.MPS.Users, *user) {
			return nil
		}
		as = fmt.Sprintf("runs as %d", *user)
	}
	return &api.Violation{Rule: api.RuleStrategy, Reason: "MPS user", Detail: fmt.Sprintf(
		"the MPS daemon of pool %s serves the users %v, and container %q %s; set its securityContext.runAsUser to one of them",
		p.Pool, p.MPS.Users, p.Container.Name, as)}
}

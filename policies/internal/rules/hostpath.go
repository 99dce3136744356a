package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// hostPath denies volumes onto what a slice is held by: device nodes, the driver's and the MPS daemons' directories,
// CDI specifications, sockets, what kubelet and container runtime keep and run, and every directory above one of them. What
// else of the node a pod may mount is for Pod Security to say.
func hostPath() Rule {
	return Rule{Reason: "a hostPath that reaches out of a slice", Find: func(s Subject) (found []string) {
		for _, v := range s.Pod.Spec.Volumes {
			if v.HostPath == nil {
				continue
			}
			if held := heldPath(v.HostPath.Path, s.MPS); held != "" {
				found = append(found, fmt.Sprintf("volume %q is hostPath %s, which reaches %s", v.Name, message.Quote(v.HostPath.Path), held))
			}
		}
		return found
	}, Instead: "remove it: a slice brings the devices and mounts that it needs"}
}

// heldPath returns what the host's path reaches that no slice may, or "".
func heldPath(hostPath string, mps strategies.MPSSpec) string {
	at := nodePath(hostPath)
	for _, held := range heldPaths(mps) {
		if name, ok := strings.CutSuffix(held, "*"); ok && strings.HasPrefix(at, name) || liesIn(at, held) || liesIn(held, at) {
			return held
		}
	}
	if strings.HasSuffix(at, ".sock") {
		return "a socket of the node"
	}
	return ""
}

// heldPaths are the host's paths that no slice may reach. A star stands for the rest of a name and all that is in it.
func heldPaths(mps strategies.MPSSpec) []string {
	paths := []string{
		"/dev", "/proc", "/sys",
		"/run", "/var/snap", // daemons of MPS, CDI, container runtimes under all their names, D-Bus, systemd
		"/tmp/nvidia-mps", "/tmp/nvidia-log", "/var/log/nvidia-mps", "/home/kubernetes/bin/nvidia", "/opt/nvidia",
		"/bin", "/sbin", "/lib*", "/usr/bin", "/usr/sbin", "/usr/lib*", "/usr/local/bin", "/usr/local/sbin", "/usr/local/lib*", "/usr/local/nvidia",
		"/etc/cdi", "/etc/nvidia-container-runtime", "/etc/containerd", "/etc/crio", "/etc/docker", "/etc/ld.so*", "/etc/systemd", "/etc/cron*",
		"/etc/cni", "/opt/cni", "/etc/kubernetes",
		"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/containers", "/var/lib/docker", "/var/lib/cri-dockerd", "/var/lib/rancher", "/var/lib/k0s",
	}
	for _, own := range []string{mps.PipeDirectory, mps.LogDirectory, mps.ShmDirectory} {
		if own = nodePath(own); own != "/" && !slices.Contains(paths, own) {
			paths = append(paths, own)
		}
	}
	return paths
}

// nodePath is an absolute path without detours. On a node /var/run is /run, and so is where it leads.
func nodePath(p string) string {
	p = path.Clean("/" + p)
	if liesIn(p, "/var/run") {
		return strings.TrimPrefix(p, "/var")
	}
	return p
}

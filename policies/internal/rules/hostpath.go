package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

// hostPath denies volumes onto the enforcement of slices: device nodes, the driver's and the MPS daemons' directories,
// CDI specifications, sockets, the state, programs and configuration of kubelet, container runtime, etcd and the node's
// own services, programs that run as root there, and every directory above one of them. Other mounts of the node are a
// matter of Pod Security.
var hostPath = Rule{Reason: "a hostPath that reaches out of a slice", Find: func(s Subject) (found []Part) {
	for i, v := range s.Pod.Spec.Volumes {
		if v.HostPath == nil {
			continue
		}
		at := field.NewPath("spec", "volumes").Index(i).Child("hostPath", "path").String()
		held := heldPath(v.HostPath.Path, s.MPS)
		switch {
		case held == "":
		case MayBeRead(v) && onlyRead(s.Pod, v.Name):
		case MayBeRead(v):
			found = append(found,
				Part{Field: at, Text: fmt.Sprintf("volume %q is hostPath %s, of which each mount has to be readOnly", v.Name, message.Quote(v.HostPath.Path))})
		default:
			found = append(found,
				Part{Field: at, Text: fmt.Sprintf("volume %q is hostPath %s, which reaches %s", v.Name, message.Quote(v.HostPath.Path), held)})
		}
	}
	return found
}, Instead: "remove it: a slice brings the devices and mounts that it needs"}

// MayBeRead reports whether a volume is of a held path, and may be read: it has the names of hosts, the time zone or certificates.
func MayBeRead(v corev1.Volume) bool {
	return v.HostPath != nil &&
		slices.ContainsFunc([]string{"/etc/localtime", "/etc/timezone", "/etc/os-release", "/etc/machine-id", "/etc/hosts", "/etc/resolv.conf",
			"/etc/passwd", "/etc/group", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ca-certificates"},
			func(open string) bool { return liesIn(nodePath(v.HostPath.Path), open) })
}

// onlyRead reports whether no container writes to the volume.
func onlyRead(pod *corev1.Pod, volume string) bool {
	for c := range podspec.EveryContainer(&pod.Spec) {
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume && !m.ReadOnly }) {
			return false
		}
	}
	return true
}

// heldPath returns the protected path that the host's path reaches, or "".
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
		"/bin", "/sbin", "/lib*", "/usr/bin", "/usr/sbin", "/usr/lib*", "/usr/local/bin",
		"/usr/local/sbin", "/usr/local/lib*", "/usr/local/nvidia",
		"/etc", "/root", "/boot", "/sysroot", "/ostree", "/opt/bin", "/opt/cni", "/opt/containerd",
		"/var/spool", "/var/log/pods", "/var/log/containers", "/var/lib/cloud", "/var/lib/systemd", "/var/lib/dpkg", "/var/lib/etcd*",
		"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/containers", "/var/lib/docker",
		"/var/lib/cri-dockerd", "/var/lib/rancher", "/var/lib/k0s",
	}
	for _, own := range []string{mps.PipeDirectory, mps.LogDirectory, mps.ShmDirectory} {
		if own = nodePath(own); own != "/" && !slices.Contains(paths, own) {
			paths = append(paths, own)
		}
	}
	return paths
}

// nodePath is an absolute path without detours. On a node /var/run is /run, and if the system is an image, /root, /opt
// and /usr/local lead into /var: both paths read the same files.
func nodePath(p string) string {
	p = path.Clean("/" + p)
	for link, to := range map[string]string{"/var/run": "/run", "/var/roothome": "/root", "/var/opt": "/opt", "/var/usrlocal": "/usr/local"} {
		if liesIn(p, link) {
			return to + strings.TrimPrefix(p, link)
		}
	}
	return p
}

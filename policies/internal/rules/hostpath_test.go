package rules

import (
	"testing"

	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

func TestHeldPath(t *testing.T) {
	for path, held := range map[string]bool{
		"/": true, "/run": true, "/var/run": true, "/var": true, "/var/lib": true, "/etc": true, "/usr": true, "/usr/local": true, "/tmp": true,
		"/run/k3s/containerd/containerd.sock": true, "/run/k0s/containerd.sock": true, "/run/docker/containerd/containerd.sock": true,
		"/run/cri-dockerd.sock": true, "/run/podman/podman.sock": true, "/var/snap/microk8s/common/run/containerd.sock": true,
		"/run/systemd/private": true, "/var/run/dbus": true, "/var/lib/containerd": true, "/var/lib/docker/overlay2": true,
		"/usr/lib/x86_64-linux-gnu": true, "/usr/lib64": true, "/lib64": true, "/usr/bin": true, "/etc/systemd/system": true, "/etc/cron.d": true,
		"/srv/some.sock": true, "/run/../run//nvidia-mps/.": true, "/dev/shm": true,
		"/data": false, "/srv/models": false, "/etc/localtime": false, "/etc/ssl/certs": false, "/usr/share/zoneinfo": false, "/var/lib/models": false,
		"/mnt/nfs": false, "/home/user": false, "/tmp/work": false, "/opt/models": false,
	} {
		if got := heldPath(path, strategies.MPSSpec{}); (got != "") != held {
			t.Errorf("%s reaches %q, want held %v", path, got, held)
		}
	}
}

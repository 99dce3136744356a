package rules

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

func TestHeldPath(t *testing.T) {
	for path, held := range map[string]bool{
		"/": true, "/run": true, "/var/run": true, "/var": true, "/var/lib": true, "/etc": true, "/usr": true, "/usr/local": true, "/tmp": true,
		"/run/k3s/containerd/containerd.sock": true, "/run/k0s/containerd.sock": true, "/run/docker/containerd/containerd.sock": true,
		"/run/cri-dockerd.sock": true, "/run/podman/podman.sock": true, "/var/snap/microk8s/common/run/containerd.sock": true,
		"/run/systemd/private": true, "/var/run/dbus": true, "/var/lib/containerd": true, "/var/lib/docker/overlay2": true,
		"/usr/lib/x86_64-linux-gnu": true, "/usr/lib64": true, "/lib64": true, "/usr/bin": true, "/etc/systemd/system": true, "/etc/cron.d": true,
		"/etc/localtime": true, "/etc/udev/rules.d": true, "/etc/profile.d": true, "/etc/rancher": true,
		"/root/.ssh": true, "/var/spool/cron/crontabs": true,
		"/var/lib/cloud/scripts/per-boot": true, "/opt/containerd": true, "/var/lib/etcd": true,
		"/var/lib/etcd-data": true, "/var/log/pods": true, "/opt/bin": true,
		"/sysroot/ostree": true, "/var/roothome/.ssh": true, "/var/opt/cni": true,
		"/var/usrlocal/bin": true, "/var/lib/dpkg/info": true, "/boot": true,
		"/srv/some.sock": true, "/run/../run//nvidia-mps/.": true, "/dev/shm": true,
		"/data": false, "/srv/models": false, "/usr/share/zoneinfo": false, "/var/lib/models": false,
		"/mnt/nfs": false, "/home/user": false, "/tmp/work": false, "/opt/models": false, "/var/opt/models": false,
		"/var/log/app": false, "/var/lib/cloudera": false,
	} {
		if got := heldPath(path, strategies.MPSSpec{}); (got != "") != held {
			t.Errorf("%s reaches %q, want held %v", path, got, held)
		}
	}
}

// TestHostPathToRead mounts what may be read, and attacks by a mount that writes.
func TestHostPathToRead(t *testing.T) {
	pod := func(path string, mounts ...bool) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}},
			InitContainers: []corev1.Container{{Name: "first"}}, Containers: []corev1.Container{{Name: "main"}}}}
		for i, readOnly := range mounts {
			c := &p.Spec.Containers[0]
			if i > 0 {
				c = &p.Spec.InitContainers[0]
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/v", ReadOnly: readOnly})
		}
		return p
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		says string
	}{
		"read":                     {pod("/etc/ssl/certs", true), ""},
		"read by another path":     {pod("/etc/../etc/localtime/", true, true), ""},
		"mounted by nobody":        {pod("/etc/localtime"), ""},
		"written":                  {pod("/etc/passwd", false), "each mount has to be readOnly"},
		"written by one container": {pod("/etc/passwd", true, false), "each mount has to be readOnly"},
		"beside what may be read":  {pod("/etc/shadow", true), "which reaches /etc"},
		"above it":                 {pod("/etc/ssl", true), "which reaches /etc"},
		"in it":                    {pod("/etc/ssl/certs/ca.crt", true), ""},
		"keys":                     {pod("/etc/pki/tls/private", true), "which reaches /etc"},
		"a name that begins alike": {pod("/etc/passwd-", true), "which reaches /etc"},
	} {
		var found string
		for _, part := range hostPath.Find(Subject{Pod: tt.pod}) {
			found += part.Text
		}
		if (found == "") != (tt.says == "") || !strings.Contains(found, tt.says) {
			t.Errorf("%s: %q, want %q", name, found, tt.says)
		}
	}
}

func TestUnconfined(t *testing.T) {
	options := &corev1.SELinuxOptions{Type: "spc_t"}
	for name, spec := range map[string]corev1.PodSpec{
		"pod":       {SecurityContext: &corev1.PodSecurityContext{SELinuxOptions: options}},
		"container": {Containers: []corev1.Container{{Name: "main", SecurityContext: &corev1.SecurityContext{SELinuxOptions: options}}}},
		"init container": {
			InitContainers: []corev1.Container{{Name: "first", SecurityContext: &corev1.SecurityContext{SELinuxOptions: options}}},
		},
	} {
		for kind, denied := range map[string]bool{"spc_t": true, "unconfined_t": true,
			"container_t": false, "nvidia_container_t": false, "": false} {
			options.Type = kind
			if found := privileged.Find(Subject{Pod: &corev1.Pod{Spec: spec}}); (len(found) == 1) != denied {
				t.Errorf("%s of type %q: %q", name, kind, found)
			}
		}
	}
}

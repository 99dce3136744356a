package rules

import "testing"

func TestInjectsDevices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, value string
		want       bool
	}{
		{"cdi.k8s.io/x", "nvidia.com/gpu=all", true},
		{"cdi.k8s.io/x", "npu.example.com/npu=0", false},
		{"nvidia.cdi.k8s.io/container.a", "all", true},
		{"cdi-devices.nri.io/pod", "- management.nvidia.com/gpu=all", true},
		{"cdi-devices.noderesource.dev/container.a", "- gpu.intel.com/igpu=tc", false},
		{"nvidia.com/container.a.gpus.devices", "all", true},
		{"nvidia.com/gpu.workload.config", "container", false},
		{"io.kubernetes.cri-o.Devices", "/dev/fuse,/dev/nvidia0", true},
		{"devices.crio.io", "/dev/fuse", false},
		{"devices.nri.io/container.a", "[{path: /dev/x, type: c, major: 195, minor: 0}]", true},
		{"devices.nri.io", "[{path: /dev/x, type: c, major: 0303, minor: 0}]", true},
		{"devices.noderesource.dev/pod", "- {path: /dev/char/195:0}", true},
		{"devices.gke.io/container.a", "- path: /dev/nvidia0", true},
		{"devices.gke.io/container.a", "- path: /dev/kvm", false},
		{"devices.nri.io/container.a", "[{path: /dev/kvm, type: c, major: 10, minor: 232, file_mode: 438, uid: 0}]", false},
		{"devices.nri.io/container.a", "what is this", true},
	} {
		if got := injectsDevices(tt.key, tt.value); got != tt.want {
			t.Errorf("%s: %s: %v", tt.key, tt.value, got)
		}
	}
}

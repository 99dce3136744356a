package apiserver

import (
	"encoding/json"
	"strings"
	"testing"
)

// Each test is named after an attack of webhook/THREATS.md, which says of every one what stops it.

func TestA1(t *testing.T) {
	t.Run("visible devices without a GPU", func(t *testing.T) {
		a := attacker(t, "", nil)
		for name, env := range map[string]string{
			"all":          "{name: NVIDIA_VISIBLE_DEVICES, value: all}",
			"elsewhere":    "{name: NVIDIA_VISIBLE_DEVICES, valueFrom: {configMapKeyRef: {name: gpus, key: all, optional: true}}}",
			"cuda-version": "{name: CUDA_VERSION, value: '12.4'}",
		} {
			pod := a.made(name, "spec:\n  containers:\n  - {name: a, image: busybox, env: ["+env+"]}\n")
			if got := valueIn(pod, "a", "NVIDIA_VISIBLE_DEVICES"); got != "void" {
				t.Errorf("%s: NVIDIA_VISIBLE_DEVICES is %q", name, got)
			}
			a.contained("visible devices without a GPU: "+name, "NVIDIA_VISIBLE_DEVICES=void")
			again, err := json.Marshal(podOf(t, name, a.namespace, "spec:\n  containers:\n  - {name: a, image: busybox, env: ["+env+"]}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if err := a.apply.Apply(t.Context(), again); err != nil {
				t.Errorf("%s: its manifest cannot be applied again: %v", name, err)
			}
		}
	})
}

func TestA2(t *testing.T) {
	t.Run("visible devices by image or envFrom", func(t *testing.T) {
		a := attacker(t, "", nil)
		pod := a.made("train",
			slice("", "", "    env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: NVIDIA_VISIBLE_DEVICES, value: '0'}]\n")+
				"  - {name: side, image: 'nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04', envFrom: [{configMapRef: {name: gpus, optional: true}}]}\n")
		if a, side := valueIn(pod, "a", "NVIDIA_VISIBLE_DEVICES"), valueIn(pod, "side", "NVIDIA_VISIBLE_DEVICES"); a != "" || side != "void" {
			t.Errorf("the device plugin's container says %q, the other one %q", a, side)
		}
		a.contained("visible devices by the image or a duplicate entry", "NVIDIA_VISIBLE_DEVICES=void")
		if notes := pod.Annotations["gpuslice.dev/planned"]; strings.Contains(notes, "ConfigMap or Secret") {
			t.Errorf("a container without a GPU gets a warning about its envFrom: %s", notes)
		}
		pod = a.made("from", slice("", "", "    envFrom: [{configMapRef: {name: gpus, optional: true}}]\n"))
		if notes := pod.Annotations["gpuslice.dev/planned"]; !strings.Contains(notes, "ConfigMap or Secret") {
			t.Errorf("no warning that envFrom cannot be seen: %s", notes)
		}
	})
}

func TestA3(t *testing.T) {
	t.Run("mount that names devices", func(t *testing.T) {
		a := attacker(t, "", nil)
		const mount = "{name: a, image: busybox, volumeMounts: [{name: v, mountPath: /var/run/nvidia-container-devices/all}]}"
		a.denied("device-mount-without-a-gpu",
			"spec:\n  volumes: [{name: v, emptyDir: {}}]\n  containers:\n  - "+mount+"\n", "a mount that takes devices")
		a.denied("device-mount-in-a-slice",
			slice("  volumes: [{name: v, emptyDir: {}}]\n  initContainers: ["+strings.Replace(mount, "name: a", "name: i", 1)+"]\n", "", ""),
			"a mount that takes devices")
	})
}

func TestA4(t *testing.T) {
	t.Run("annotations and variables that take devices", func(t *testing.T) {
		a := attacker(t, "", nil)
		a.denied("cdi", "metadata:\n  annotations: {cdi.k8s.io/x: nvidia.com/gpu=all}\nspec:\n  containers:\n  - {name: a, image: busybox}\n",
			"an annotation that takes devices")
		a.denied("nvidia-cdi", slice("", "  annotations: {nvidia.cdi.k8s.io/container.a: nvidia.com/gpu=all}\n", ""),
			"an annotation that takes devices")
		for name, annotation := range map[string]string{
			"kai":    "nvidia.com/container.a.gpus.devices: all",
			"nri":    "cdi-devices.nri.io/container.a: '[nvidia.com/gpu=all]'",
			"device": "devices.nri.io/container.a: '[{path: /dev/x, type: c, major: 0xc3, minor: 0}]'",
			"crio":   "io.kubernetes.cri-o.Devices: /dev/nvidia0",
		} {
			a.denied(name, "metadata:\n  annotations: {"+annotation+"}\nspec:\n  containers:\n  - {name: a, image: busybox}\n",
				"an annotation that takes devices")
		}
		a.made("other-devices", "metadata:\n  annotations: {devices.nri.io/container.a: '[{path: /dev/kvm, type: c, major: 10, minor: 232}]'}\nspec:\n  containers:\n  - {name: a, image: busybox}\n")
		pod := a.made("variables",
			slice("", "", "    env: [{name: NVIDIA_GPU_MEMORY_LIMIT, value: '99999'}, {name: NVIDIA_IMEX_CHANNELS, value: all}]\n"))
		if limit, channels := valueIn(pod, "a", "NVIDIA_GPU_MEMORY_LIMIT"), valueIn(pod, "a", "NVIDIA_IMEX_CHANNELS"); limit != "" ||
			channels != "" {
			t.Errorf("limit %q, channels %q", limit, channels)
		}
		a.contained("driver variables of the author's own", "removed")
	})
}

// TestA4Live adds to pods that exist what their creation would be denied for.
func TestA4Live(t *testing.T) {
	t.Run("annotations that take devices, on a live pod", func(t *testing.T) {
		a := attacker(t, "", nil)
		a.made("without-gpu", "spec:\n  schedulingGates: [{name: example.test/wait}]\n  containers:\n  - {name: a, image: busybox}\n")
		a.made("sliced", slice("  schedulingGates: [{name: example.test/wait}]\n", "", ""))
		for _, pod := range []string{"without-gpu", "sliced"} {
			for _, annotation := range []string{
				`"cdi.k8s.io/gpu":"nvidia.com/gpu=all"`, `"nvidia.cdi.k8s.io/container.a":"management.nvidia.com/gpu=all"`,
				`"nvidia.com/container.a.gpus.devices":"all"`, `"io.kubernetes.cri-o.Devices":"/dev/nvidia0"`,
				`"cdi-devices.noderesource.dev/pod":"- nvidia.com/gpu=all"`,
			} {
				err := a.patch(pod, `{"metadata":{"annotations":{`+annotation+`}}}`)
				deniedByUs(t, annotation, err, "an annotation that takes devices")
				a.reportDenial("live pod "+pod+": "+annotation, err)
			}
			for _, harmless := range []string{`"cdi.k8s.io/npu":"npu.example.com/npu=0"`, `"example.test/devices":"x"`} {
				if err := a.patch(pod, `{"metadata":{"annotations":{`+harmless+`}}}`); err != nil {
					t.Errorf("%s: %v", harmless, err)
				}
			}
			if err := a.patch(pod, `{"spec":{"schedulingGates":[]}}`); err != nil {
				t.Errorf("the gate of %s stays: %v", pod, err)
			}
		}
	})
}

func TestA5(t *testing.T) {
	t.Run("opt-out by the author", func(t *testing.T) {
		a := attacker(t, "mode: transparent\ndefaultSlice: {memory: 4Gi}", nil)
		whole := strings.Replace(slice("", "", ""), "gpuslice.dev/memory: 4Gi", "LABEL", 1)
		a.denied("share", strings.Replace(whole, "LABEL", "gpuslice.dev/share: disabled", 1), "opting out is not allowed")
		for name, label := range map[string]string{"hami": "hami.io/webhook: ignore", "ours": "gpuslice.dev/ignore: 'true'"} {
			if pod := a.made(name, strings.Replace(whole, "LABEL", label, 1)); !sliced(pod) {
				t.Errorf("%s: the pod is left alone", name)
			}
			a.contained("opt-out label of "+name, "the pod has a slice")
		}
	})
}

func TestA6(t *testing.T) {
	t.Run("limits of the author's own", func(t *testing.T) {
		a := attacker(t, "", nil)
		pod := a.made("train",
			slice("", "", "    env: [{name: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, value: '0=80G'}, {name: GPUSLICE_MEMORY_BYTES, value: '1'}]\n"))
		if pinned, ours := valueIn(pod, "a", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), valueIn(pod, "a", "GPUSLICE_MEMORY_BYTES"); pinned != "" ||
			ours != "4294967296" {
			t.Errorf("the author's own limit is %q, ours %q", pinned, ours)
		}
		a.contained("limits of the author's own", "overwritten")
	})
}

func TestA8(t *testing.T) {
	t.Run("ways out of the container", func(t *testing.T) {
		a := attacker(t, "", nil)
		for words, manifest := range map[string]string{
			"hostPID in a slice":                slice("  hostPID: true\n", "", ""),
			"hostIPC in a slice":                slice("  hostIPC: true\n", "", ""),
			"a privileged container in a slice": slice("", "", "    securityContext: {privileged: true}\n"),
			"/run/nvidia-mps\", which reaches":  slice("  volumes: [{name: v, hostPath: {path: /run/nvidia-mps}}]\n", "", ""),
			"\"/\", which reaches":              slice("  volumes: [{name: v, hostPath: {path: /}}]\n", "", ""),
			"device-plugins\", which reaches":   slice("  volumes: [{name: v, hostPath: {path: /var/lib/kubelet/device-plugins}}]\n", "", ""),
			"/k3s/containerd/containerd.sock\", which": slice(
				"  volumes: [{name: v, hostPath: {path: /run/k3s/containerd/containerd.sock}}]\n", "", ""),
			"/var/run/podman\", which reaches":     slice("  volumes: [{name: v, hostPath: {path: /var/run/podman}}]\n", "", ""),
			"/var/lib/containerd\", which reaches": slice("  volumes: [{name: v, hostPath: {path: /var/lib/containerd}}]\n", "", ""),
			"/x86_64-linux-gnu\", which reaches":   slice("  volumes: [{name: v, hostPath: {path: /usr/lib/x86_64-linux-gnu}}]\n", "", ""),
			"/srv/agent.sock\", which reaches":     slice("  volumes: [{name: v, hostPath: {path: /srv/agent.sock}}]\n", "", ""),
			"a capability that reaches out of a slice": slice(
				"  initContainers: [{name: i, image: busybox, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]\n", "", ""),
		} {
			a.denied("out", manifest, words)
		}
	})
}

func TestA9(t *testing.T) {
	t.Run("rights over the guard", func(t *testing.T) {
		a := attacker(t, "", nil)
		for _, capability := range []string{"SYS_PTRACE", "KILL"} {
			a.denied("rights", slice("", "", "    securityContext: {runAsUser: 1000, capabilities: {add: ["+capability+"]}}\n"), capability)
		}
		a.denied("name", strings.Replace(slice("", "", ""), "- name: a", "- name: gpuslice-guard", 1), "reserved name")
	})
}

package cgroupv2

import (
	"path/filepath"
	"regexp"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

const (
	hookProgram = "/usr/bin/nvidia-cdi-hook"
	oldDriver   = "/drivers/old" // the root of a driver that sets no limits
	newDriver   = "/drivers/new"
)

// library is the path of NVML below a driver's root.
const library = "/usr/lib/x86_64-linux-gnu/" + fakegpu.Library

// hooked is a container with the hook that NVIDIA's toolkit 1.20.1 gives to every device.
func hooked(driver string, env ...string) process {
	hook := specs.Hook{
		Path: hookProgram,
		Args: []string{"nvidia-cdi-hook", "apply-cuda-memory-limits", "--driver-root", driver,
			"--gpu-id", "GPU-00000000-0000-4000-8000-000000000000"},
		Env: []string{fakegpu.ConfigVariable + "=" + fakegpu.Config{Fault: fakegpu.Fault{Limits: true}}.String()},
	}
	return process{container: "trainer", args: []string{pauseProgram}, env: env, hooks: &specs.Hooks{CreateRuntime: []specs.Hook{hook}}}
}

// noFunction is what the runtimes write of a hook that the dynamic linker ends. crun keeps the exit status alone.
var noFunction = regexp.MustCompile(`undefined symbol: nvmlDeviceSetMemoryLimits_v1|hook.*exit code: 127`)

func testToolkit(t *testing.T, l layout, _ kubernetes.Interface) {
	limit := "NVIDIA_GPU_MEMORY_LIMIT=8192"
	p := newPod(t, l, "hooked")
	p.run(hooked(oldDriver))
	p.wantDenied(hooked(oldDriver, limit), noFunction)

	limited := p.run(hooked(newDriver, limit))
	var set [64]byte
	cgroup := filepath.Join("/sys/fs/cgroup", l.processes(p.uid, limited.id))
	n, err := unix.Getxattr(cgroup, "user.gpuslice.memory-limits", set[:])
	if got := string(set[:max(0, n)]); err != nil || got != "8589934592 8589934592" {
		t.Errorf("the driver has the limits %q (%v)", got, err)
	}
}

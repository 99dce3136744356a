package pod

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// tenant starts a process that holds 1 GiB on the pod's node.
func tenant(t *testing.T, p Pod) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "read _", p.Node()+"/gpu0=1GiB")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

func newPod(t *testing.T) Pod {
	t.Helper()
	p, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPod(t *testing.T) {
	t.Run("its processes are all that its library shows", func(t *testing.T) {
		file, err := fakegpu.Build(t.Context(), "")
		if errors.Is(err, fakegpu.ErrNoCompiler) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		p, other := newPod(t), newPod(t)
		for _, v := range p.Environment(fakegpu.Config{}) {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv(name, value)
		}
		library := nvml.New(nvml.WithLibraryPath(file))
		if ret := library.Init(); ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
		defer library.Shutdown()
		device, ret := library.DeviceGetHandleByIndex(0)
		if ret != nvml.SUCCESS {
			t.Fatal(ret)
		}
		expect := func(what string, pids ...int) {
			t.Helper()
			list, ret := device.GetComputeRunningProcesses()
			if ret != nvml.SUCCESS {
				t.Fatal(ret)
			}
			var listed []int
			for _, process := range list {
				listed = append(listed, int(process.Pid))
			}
			if diff := cmp.Diff(pids, listed); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			if memory, ret := device.GetMemoryInfo(); ret != nvml.SUCCESS || memory.Used != uint64(len(pids))<<30 {
				t.Errorf("%s: a total of %d, %v", what, memory.Used, ret)
			}
		}
		pid, neighbor := tenant(t, p), tenant(t, other)
		expect("before it is in the pod")
		if err := errors.Join(p.Add(pid, "trainer"), other.Add(neighbor, "trainer")); err != nil {
			t.Fatal(err)
		}
		expect("with a process in another pod", pid)
		if err := p.Add(neighbor, "scorer"); err != nil {
			t.Fatal(err)
		}
		expect("with a process that holds memory on another node", pid)
	})
}

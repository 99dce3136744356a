package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

func TestRunTerminates(t *testing.T) {
	t.Parallel()
	g := guardPod(t, fakegpu.Config{}, func(l *limits.Limits) {
		l.Containers = append(l.Containers, limits.Container{Name: "scorer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1})
	})
	g.await("started")
	hog := g.tenant("trainer", "hold 9GiB ignore-term")
	neighbor := g.tenant("scorer", "hold 6GiB")
	line := g.await("termination result")
	if line["result"] != "terminated" || line["signal"] != "SIGKILL" ||
		line["container"] != "trainer" || line["pid"] != float64(hog.Process.Pid) {
		t.Errorf("reported %v", line)
	}
	if err := hog.Wait(); err == nil || hog.ProcessState.String() != "signal: killed" {
		t.Errorf("the hog: %v", hog.ProcessState)
	}
	if code, text := g.probe("--liveness"); code != exitFailed ||
		!strings.Contains(text, "gpuslice terminated tenant") || !strings.Contains(text, "9Gi of 8Gi") {
		t.Errorf("the first probe: %d %s", code, text)
	}
	if code, text := g.probe("--liveness"); code != 0 {
		t.Errorf("the second probe: %d %s", code, text)
	}
	if code, text := g.probe("--startup"); code != 0 || text != "ok" {
		t.Errorf("the startup probe: %d %s", code, text)
	}
	if neighbor.ProcessState != nil || neighbor.Process.Signal(present) != nil {
		t.Error("the neighbor did not live on")
	}
}

func TestRunDryRun(t *testing.T) {
	t.Parallel()
	g := guardPod(t, fakegpu.Config{}, nil, "--dry-run")
	hog := g.tenant("trainer", "hold 9GiB")
	if line := g.await("termination result"); line["result"] != "dry-run" || line["dryRun"] != true {
		t.Errorf("reported %v", line)
	}
	if err := hog.Process.Signal(present); err != nil {
		t.Errorf("the hog is gone: %v", err)
	}
}

func TestRunNotEnforcing(t *testing.T) {
	t.Parallel()
	const lists, total = "nvmlDeviceGet*RunningProcesses*", "nvmlDeviceGetMemoryInfo*"
	for name, c := range map[string]fakegpu.Config{
		"all ones":            {Fault: fakegpu.Fault{Figures: "all-ones"}},
		"zero":                {Fault: fakegpu.Fault{Figures: "zero"}},
		"PIDs of the node":    {Fault: fakegpu.Fault{PIDs: "+5000000"}},
		"an older driver":     {Driver: "550.54.15"},
		"lists not supported": {Fault: fakegpu.Fault{Fail: []fakegpu.Fail{{Call: lists, Return: "NOT_SUPPORTED"}}}},
		"a device that has been lost": {
			Fault: fakegpu.Fault{Fail: []fakegpu.Fail{{Call: lists, Return: "GPU_IS_LOST"}, {Call: total, Return: "GPU_IS_LOST"}}},
		},
		"a lost device that has no UUID": {On: map[int]fakegpu.Fault{0: {Fail: []fakegpu.Fail{{Call: "*", Return: "GPU_IS_LOST"}}}}},
		"a call that hangs":              {Fault: fakegpu.Fault{Hang: []string{lists, total}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guardPod(t, c, nil)
			hog := g.tenant("trainer", "hold 20GiB")
			began := time.Now()
			g.await("not enforcing")
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("reported after %s", took)
			}
			if code, text := g.probe("--readiness"); code != exitFailed || !strings.Contains(text, "cannot enforce this pod's slice") {
				t.Errorf("the readiness probe: %d %s", code, text)
			}
			if err := hog.Process.Signal(present); err != nil {
				t.Errorf("the hog is gone: %v", err)
			}
		})
	}
}

func TestRunDriverUpdate(t *testing.T) {
	t.Parallel()
	// The container that is started again has the new library.
	t.Run("ends the process", func(t *testing.T) {
		t.Parallel()
		g := guardPod(t, fakegpu.Config{Fault: fakegpu.Fault{Slow: nil,
			Fail: []fakegpu.Fail{{Call: "nvmlDeviceGetMemoryInfo*", Return: "LIB_RM_VERSION_MISMATCH"}}}}, nil)
		if line := g.await("stopped"); line["driverUpdated"] != true {
			t.Errorf("stopped with %v", line)
		}
		err := g.cmd.Wait()
		if g.cmd.ProcessState.ExitCode() != exitFailed {
			t.Errorf("ended with %v", err)
		}
		if text, err := os.ReadFile(g.status); err != nil || !strings.Contains(string(text), "driver was updated") {
			t.Errorf("the termination message is %q, %v", text, err)
		}
	})
}

func TestRunEscalates(t *testing.T) {
	t.Parallel()
	g := guardPod(t, fakegpu.Config{}, func(l *limits.Limits) { l.MaxTerminations, l.Settle = 1, 50*time.Millisecond })
	first := g.tenant("trainer", "hold 9GiB")
	g.await("termination result")
	_ = first.Wait()
	// The one that uses too much comes last: the container is terminated soon after.
	other, second := g.tenant("trainer", "hold 1GiB ignore-term"), g.tenant("trainer", "hold 9GiB")
	g.await("terminate container")
	if line := g.await("termination result"); line["result"] != "terminated" {
		t.Errorf("reported %v", line)
	}
	for _, p := range []*exec.Cmd{other, second} {
		if err := p.Wait(); err == nil {
			t.Error("a process of the container exited by itself")
		}
	}
}

package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

func TestAHogIsEndedAndTheProbeCarriesTheReasonOnce(t *testing.T) {
	t.Parallel()
	g := guardPod(t, fakegpu.Config{}, nil)
	g.await("started")
	hog := g.tenant("trainer", "hold 9GiB ignore-term")
	neighbour := g.tenant("scorer", "hold 6GiB")
	line := g.await("report")
	if line["result"] != "ended" || line["signal"] != "SIGKILL" || line["container"] != "trainer" || line["pid"] != float64(hog.Process.Pid) {
		t.Errorf("reported %v", line)
	}
	if err := hog.Wait(); err == nil || hog.ProcessState.String() != "signal: killed" {
		t.Errorf("the hog: %v", hog.ProcessState)
	}
	if code, said := g.probe(false, "--liveness"); code == 0 || strings.Contains(said, "ended") {
		t.Errorf("a tenant asked and got %d: %s", code, said)
	}
	if code, said := g.probe(true, "--liveness"); code != 1 || !strings.Contains(said, "gpuslice ended tenant") || !strings.Contains(said, "9Gi of 8Gi") {
		t.Errorf("the first probe: %d %s", code, said)
	}
	if code, said := g.probe(true, "--liveness"); code != 0 {
		t.Errorf("the second probe: %d %s", code, said)
	}
	if code, said := g.probe(true, "--startup"); code != 0 || said != "guarding" {
		t.Errorf("the startup probe: %d %s", code, said)
	}
	if neighbour.ProcessState != nil || neighbour.Process.Signal(present) != nil {
		t.Error("the neighbour did not live on")
	}
}

func TestADryRunEndsNobody(t *testing.T) {
	t.Parallel()
	g := guardPod(t, fakegpu.Config{}, nil, "--dry-run")
	hog := g.tenant("trainer", "hold 9GiB")
	if line := g.await("report"); line["result"] != "spared" || line["dryRun"] != true {
		t.Errorf("reported %v", line)
	}
	if err := hog.Process.Signal(present); err != nil {
		t.Errorf("the hog is gone: %v", err)
	}
}

func TestReadingsThatCannotBeReliedOnEndNobodyAndAreSaidInTime(t *testing.T) {
	t.Parallel()
	const lists, total = "nvmlDeviceGet*RunningProcesses*", "nvmlDeviceGetMemoryInfo*"
	for name, c := range map[string]fakegpu.Config{
		"all ones":                       {Fault: fakegpu.Fault{Figures: "all-ones"}},
		"zero":                           {Fault: fakegpu.Fault{Figures: "zero"}},
		"PIDs of the node":               {Fault: fakegpu.Fault{PIDs: "+5000000"}},
		"an older driver":                {Driver: "550.54.15"},
		"lists not supported":            {Fault: fakegpu.Fault{Fail: []fakegpu.Fail{{Call: lists, Return: "NOT_SUPPORTED"}}}},
		"a device that has been lost":    {Fault: fakegpu.Fault{Fail: []fakegpu.Fail{{Call: lists, Return: "GPU_IS_LOST"}, {Call: total, Return: "GPU_IS_LOST"}}}},
		"a lost device that has no UUID": {On: map[int]fakegpu.Fault{0: {Fail: []fakegpu.Fail{{Call: "*", Return: "GPU_IS_LOST"}}}}},
		"a call that hangs":              {Fault: fakegpu.Fault{Hang: []string{lists, total}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guardPod(t, c, nil)
			hog := g.tenant("trainer", "hold 20GiB")
			began := time.Now()
			g.await("blind")
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("said after %s", took)
			}
			if code, said := g.probe(true, "--readiness"); code != 1 || !strings.Contains(said, "cannot hold this pod to its slice") {
				t.Errorf("the readiness probe: %d %s", code, said)
			}
			if err := hog.Process.Signal(present); err != nil {
				t.Errorf("the hog is gone: %v", err)
			}
		})
	}
}

func TestAContainerThatStartsItsWorkerAgainGoesWhole(t *testing.T) {
	t.Parallel()
	g := guardPod(t, fakegpu.Config{}, func(l *limits.Limits) { l.MaxEnds, l.Settle = 1, 50*time.Millisecond })
	first := g.tenant("trainer", "hold 9GiB")
	g.await("report")
	_ = first.Wait()
	// The one that holds too much comes last: the container goes soon after.
	other, second := g.tenant("trainer", "hold 1GiB ignore-term"), g.tenant("trainer", "hold 9GiB")
	g.await("end container")
	if line := g.await("report"); line["result"] != "ended" {
		t.Errorf("reported %v", line)
	}
	for _, p := range []*exec.Cmd{other, second} {
		if err := p.Wait(); err == nil {
			t.Error("a process of the container exited by itself")
		}
	}
}

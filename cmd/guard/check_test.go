package main

import (
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

func TestCheck(t *testing.T) {
	pipe := t.TempDir()
	healthy := fakegpu.Config{}
	noDriver := fakegpu.Config{Fault: fakegpu.Fault{Fail: []fakegpu.Fail{{Call: "nvmlInit*", Return: "DRIVER_NOT_LOADED"}}}}
	for name, tc := range map[string]struct {
		config  fakegpu.Config
		change  func(*limits.Limits)
		vars    []limits.Variable
		code    int
		out     string // is part of what is printed
		message string // is part of the termination message; empty: there is none
	}{
		"all as planned": {healthy, func(l *limits.Limits) { l.MinDriver, l.MinDeviceBytes, l.MaxDeviceBytes = "565.57.01", 80<<30, 80<<30 }, nil,
			exitOK, "ok    NVML: answers, driver 580.95.05\nok    driver: 580.95.05 as planned\nok    devices: 1 visible, 1 planned\nok    memory of GPU-00000000-0000-4000-8000-000000000000: 80Gi\n", ""},
		"an older driver": {fakegpu.Config{Driver: "550.54.15"}, func(l *limits.Limits) { l.MinDriver = "565.57.01" }, nil,
			exitFailed, "FAIL  driver",
			"gpuslice: this node cannot keep what the pod was promised: the node has driver 550.54.15, and the plan needs 565.57.01 or newer"},
		"a smaller device": {fakegpu.Config{Fault: fakegpu.Fault{Memory: 40 * fakegpu.GiB}},
			func(l *limits.Limits) { l.MinDeviceBytes = 80 << 30 }, nil, exitFailed, "FAIL  memory", "has 40Gi, and the plan needs at least 80Gi"},
		"a larger device": {healthy, func(l *limits.Limits) { l.MaxDeviceBytes = 40 << 30 },
			nil, exitFailed, "FAIL  memory", "has 80Gi, and the plan is for at most 40Gi"},
		"too few devices": {healthy, func(l *limits.Limits) { l.Containers[0].GPUs = 2 },
			nil, exitFailed, "FAIL  devices", "1 devices are visible, and the plan gives 2"},
		"several devices for parts of one": {fakegpu.Config{Devices: 2}, func(l *limits.Limits) { l.OneDevice = true }, nil,
			exitFailed, "FAIL  devices", "2 devices were assigned, and the slice is to be of one: a granular pool needs nodes with one GPU"},
		"several devices of which one is visible": {healthy, nil, append(environment(func(l *limits.Limits) { l.OneDevice = true }),
			limits.Variable{Name: "NVIDIA_VISIBLE_DEVICES", Value: "GPU-a,GPU-b,GPU-a"}),
			exitFailed, "FAIL  devices", "2 devices were assigned"},
		"parts of one device": {healthy, nil, append(environment(func(l *limits.Limits) { l.OneDevice = true }),
			limits.Variable{Name: "NVIDIA_VISIBLE_DEVICES", Value: "GPU-a,GPU-a"}),
			exitOK, "ok    devices: 1 visible, 1 planned", ""},
		"no driver": {noDriver, nil, nil, exitFailed, "FAIL  NVML", "the node has no NVIDIA driver"},
		"a slow driver": {fakegpu.Config{Fault: fakegpu.Fault{Slow: []fakegpu.Slow{{Call: "nvmlInit*", For: 2 * time.Second}}}},
			nil, nil, exitOK, "ok    NVML: answers", ""},
		"a driver that fails twice": {fakegpu.Config{Fault: fakegpu.Fault{Fail: []fakegpu.Fail{{Call: "nvmlInit*",
			Return: "UNKNOWN", Times: 2}}}}, nil, nil,
			exitOK, "ok    NVML: answers", ""},
		"no limits": {healthy, nil, []limits.Variable{}, exitUsage, "", "GPUSLICE_GUARD_VERSION: not set"},
		"a newer contract": {healthy, nil, []limits.Variable{{Name: limits.VersionVariable, Value: "9"}},
			exitUsage, "", "this guard understands up to 1"},
		"MPS, no pipe": {healthy, func(l *limits.Limits) { l.ExpectMPS, l.MPSPipeDirectory = true, "/nowhere/pipe" },
			nil, exitFailed, "FAIL  MPS", "/nowhere/pipe is not there: a client would take the whole device"},
		"MPS, a dead daemon": {healthy, func(l *limits.Limits) { l.ExpectMPS, l.MPSPipeDirectory, l.MPSControl = true, pipe, "/bin/false" },
			nil, exitFailed, "FAIL  MPS", "does not answer"},
		"MPS, a live daemon": {healthy, func(l *limits.Limits) { l.ExpectMPS, l.MPSPipeDirectory, l.MPSControl = true, pipe, "/bin/true" },
			nil, exitOK, "ok    MPS daemon: answers", ""},
		"MPS, nothing to ask with": {healthy,
			func(l *limits.Limits) { l.ExpectMPS, l.MPSPipeDirectory, l.MPSControl = true, pipe, "/nowhere/control" }, nil,
			exitOK, "is unknown without nvidia-cuda-mps-control", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Node = rand.Text()
			t.Setenv(fakegpu.ConfigVariable, tc.config.String())
			vars := tc.vars
			if vars == nil {
				vars = environment(tc.change)
			}
			log := filepath.Join(t.TempDir(), "termination-log")
			var out bytes.Buffer
			code := command(t.Context(), []string{"check", "--nvml-library", built.library, "--termination-message-path", log},
				process{out: &out, err: io.Discard, lookup: lookup(vars)})
			message, _ := os.ReadFile(log)
			if code != tc.code || !strings.Contains(out.String(), tc.out) {
				t.Errorf("exit %d, printed\n%s\nwant %d and\n%s", code, out.String(), tc.code, tc.out)
			}
			if tc.message == "" && len(message) > 0 || !strings.Contains(string(message), tc.message) || strings.Contains(string(message), "\n") {
				t.Errorf("the termination message is %q, want %q in it", message, tc.message)
			}
		})
	}
}

// TestCheckBringsTheShim runs the check twice, as a kubelet does where the pod's sandbox is made anew.
func TestCheckBringsTheShim(t *testing.T) {
	config := fakegpu.Config{Node: rand.Text()}
	t.Setenv(fakegpu.ConfigVariable, config.String())
	folder := t.TempDir()
	program := filepath.Join(t.TempDir(), "gpuslice-exec")
	runs := func(want int) string {
		t.Helper()
		var out bytes.Buffer
		code := command(t.Context(),
			[]string{"check", "--nvml-library", built.library, "--termination-message-path", filepath.Join(t.TempDir(), "log"),
				"--shim-folder", folder, "--exec-program", program}, process{out: &out, err: io.Discard, lookup: lookup(environment(nil))})
		if code != want {
			t.Errorf("exit %d, want %d:\n%s", code, want, out.String())
		}
		return out.String()
	}
	if out := runs(exitFailed); !strings.Contains(out, "FAIL  shim: read the program that starts others with the shim") {
		t.Errorf("without the program it says\n%s", out)
	}
	if err := os.WriteFile(program, []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out := runs(exitOK); !strings.Contains(out, "ok    shim: is in "+folder) {
			t.Errorf("it says\n%s", out)
		}
	}
	for name, mode := range map[string]os.FileMode{"sitecustomize.py": 0o444, "gpuslice-exec": 0o555} {
		if found, err := os.Stat(filepath.Join(folder, name)); err != nil || found.Mode() != mode {
			t.Errorf("%s: %v %v", name, found, err)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v %v", entries, err)
	}
}

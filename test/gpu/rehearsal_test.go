package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// bin has the programs that "make build" leaves there. Empty: there is no C compiler.
var bin, library string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "gpu")
	if err == nil {
		library, err = fakegpu.Build(context.Background(), "")
	}
	if err == nil {
		bin, err = dir, build(dir)
	}
	if err != nil && !errors.Is(err, fakegpu.ErrNoCompiler) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func build(dir string) error {
	for _, name := range []string{"guard", "prove"} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "gpuslice-"+name), "github.com/gpuslice/gpuslice/cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_CFLAGS=-Wno-deprecated-declarations")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// healthy is a card on which each sentence holds that the simulated libraries know. Each process gets at most 2Gi, as a client of
// an MPS daemon with that limit.
func healthy() fakegpu.Config {
	return fakegpu.Config{Driver: "615.10", Fault: fakegpu.Fault{Limits: true, Charged: 2 * fakegpu.GiB, CUDALimit: 2 * fakegpu.GiB, CUDALimitOf: "process"}}
}

// run runs rows on a card, and returns the state of each, what is written, and the exit code.
func run(t *testing.T, c fakegpu.Config, rows string, change func(*exec.Cmd)) (states map[string]string, written string, code int) {
	t.Helper()
	if bin == "" {
		t.Skip(fakegpu.ErrNoCompiler)
	}
	dir := t.TempDir()
	c.Node = fmt.Sprintf("gpu%d", time.Now().UnixNano())
	if err := c.WriteFile(filepath.Join(dir, "config")); err != nil {
		t.Fatal(err)
	}
	stand, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	// A cgroup without processes: the simulated driver then counts all.
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cuda := filepath.Join(filepath.Dir(library), fakegpu.CUDALibrary)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "gpuslice-prove"), "card", "--bin", bin, "--out", filepath.Join(dir, "out"),
		"--terminations", "3", "--nvml-library", library, "--cuda-library", cuda,
		"--cgroup", dir, "--row", rows)
	var said, out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Env = append(os.Environ(), fakegpu.ConfigVariable+"="+filepath.Join(dir, "config"), "PATH="+stand+"/programs:"+os.Getenv("PATH"),
		"PYTHONPATH="+stand+"/python", "PYTHONDONTWRITEBYTECODE=1", "SIMULATED_CUDA="+cuda)
	if change != nil {
		change(cmd)
	}
	_ = cmd.Run()
	files, _ := filepath.Glob(filepath.Join(dir, "out", "*.md"))
	if len(files) != 1 {
		t.Fatalf("written: %q\n%s", files, said.String())
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out.String(), string(text)); diff != "" {
		t.Errorf("printed (-), written (+):\n%s", diff)
	}
	states = map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) == 4 && strings.HasPrefix(line, "| ") {
			states[strings.TrimPrefix(cells[0], "| ")] = cells[2]
		}
	}
	delete(states, "row")
	t.Logf("%s%s", text, said.String())
	return states, string(text), cmd.ProcessState.ExitCode()
}

// withoutPython reports whether rows that need it are not run.
func withoutPython() bool {
	_, err := exec.LookPath("python3")
	return err != nil
}

func TestRehearsal(t *testing.T) {
	t.Parallel()
	states, written, code := run(t, healthy(), "1,2,7,5,6,10,3,4", nil)
	want := map[string]string{"1": "holds", "2": "holds", "7": "holds", "5": "holds", "6": "holds", "10": "holds", "3": "holds", "4": "not run"}
	if withoutPython() {
		want["3"] = "not run"
	}
	if diff := cmp.Diff(want, states); diff != "" || code != 0 {
		t.Errorf("exit code %d, states (-want +got):\n%s", code, diff)
	}
	for _, lacking := range []string{"cuMemAllocAsync", "cuIpcGetMemHandle", "cuMemExportToShareableHandle", "cuDeviceGetAttribute"} {
		if !strings.Contains(written, "not run ("+lacking+": the CUDA library does not have it)") {
			t.Errorf("it does not report that the simulated library has no %s", lacking)
		}
	}
	if strings.Contains(written, fakegpu.ConfigVariable) {
		t.Error("the table has the environment in it")
	}
}

// TestRehearsalOfPace: how fast a reading is depends on this machine, so its state does.
func TestRehearsalOfPace(t *testing.T) {
	states, written, _ := run(t, healthy(), "8", nil)
	if states["8"] == "not run" || strings.Count(written, "p99") != 3 || !strings.Contains(written, "of its pace without") {
		t.Errorf("%s", written)
	}
}

// TestFalseSentences turns each sentence false.
func TestFalseSentences(t *testing.T) {
	t.Parallel()
	guardThatSleeps := func(cmd *exec.Cmd) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "gpuslice-guard"), []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.Args = append(cmd.Args, "--bin", dir)
	}
	for _, tt := range []struct {
		name   string
		rows   string
		spoil  func(*fakegpu.Config)
		change func(*exec.Cmd)
	}{
		{"NVML has no amounts", "1", func(c *fakegpu.Config) { c.Figures = "zero" }, nil},
		{"NVML has other PIDs", "1", func(c *fakegpu.Config) { c.PIDs = "+4000000" }, nil},
		{"the guard guards nothing", "2", nil, guardThatSleeps},
		{"a context is large", "7", func(c *fakegpu.Config) { c.Context = 600 * fakegpu.MiB }, nil},
		{"NVML is slow", "8", func(c *fakegpu.Config) {
			c.Slow = []fakegpu.Slow{{Call: "nvmlDeviceGetMemoryInfo*", For: 260 * time.Millisecond}}
		}, nil},
		{"the MPS daemon limits nothing", "5", func(c *fakegpu.Config) { c.CUDALimit = 0 }, nil},
		{"NVML has no amounts of other allocators", "6", func(c *fakegpu.Config) { c.Figures = "zero" }, nil},
		{"the driver counts no cgroup", "10", func(c *fakegpu.Config) { c.Limits = false }, nil},
		{"PyTorch heeds no fraction", "3", func(c *fakegpu.Config) { c.CUDALimit = 0 },
			func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TORCH_IGNORES_SETTINGS=1") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.rows == "3" && withoutPython() {
				t.Skip("there is no python3")
			}
			c := healthy()
			if tt.spoil != nil {
				tt.spoil(&c)
			}
			if states, _, code := run(t, c, tt.rows, tt.change); states[tt.rows] != "fails" || code != 1 {
				t.Errorf("exit code %d, %v", code, states)
			}
		})
	}
}

// TestAllowance: row 7's sentence has the default of policies.
func TestAllowance(t *testing.T) {
	if got := (&config.Policy{}).Allowance(1); got != 512 {
		t.Errorf("policies assume %d MiB: change allowance and the sentence of row 7 in cmd/prove/oncard", got)
	}
}

package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// build makes the programs as the tests are compiled: with CGO_ENABLED=0, which "make build" sets for the command line, all that
// imports net would be compiled again.
func build(dir string) error {
	const programs = "github.com/gpuslice/gpuslice/cmd/"
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir,
		programs+"gpuslice", programs+"guard", programs+"prove", programs+"exec")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOGC=400") // Makefile says why
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	for _, name := range []string{"guard", "prove", "exec"} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, "gpuslice-"+name)); err != nil {
			return err
		}
	}
	return nil
}

// healthy is a card on which each sentence holds that the simulated libraries know. Each process gets at most 2Gi, as a client of
// an MPS daemon with that limit.
func healthy() fakegpu.Config {
	return fakegpu.Config{Driver: "615.10",
		Fault: fakegpu.Fault{Limits: true, Charged: 2 * fakegpu.GiB, CUDALimit: 2 * fakegpu.GiB, CUDALimitOf: "process"}}
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
	results, err := os.ReadFile("RESULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	states = map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) == 4 && strings.HasPrefix(line, "| ") {
			states[strings.TrimPrefix(cells[0], "| ")] = cells[2]
			if row := strings.Join(cells[:2], " | ") + " |"; !strings.Contains(string(results), row) {
				t.Errorf("RESULTS.md lacks the row %q", row)
			}
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

// TestRehearsal runs each check of the rows that need no framework.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	states, written, code := run(t, healthy(), "1,2,7,5,6,10", nil)
	want := map[string]string{"1": "holds", "2": "holds", "7": "holds", "5": "holds", "6": "holds", "10": "holds"}
	if diff := cmp.Diff(want, states); diff != "" || code != 0 {
		t.Errorf("exit code %d, states (-want +got):\n%s", code, diff)
	}
	for _, subject := range []string{"cuMemAllocAsync", "IPC handle", "passed descriptor", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"} {
		if !strings.Contains(written, subject+": holds (") {
			t.Errorf("%s did not run", subject)
		}
	}
	if !strings.Contains(written, "27 of 108 multiprocessors") || !strings.Contains(written, "free of 2Gi to the client") {
		t.Error("the free and total memory of a client of MPS is missing")
	}
	if strings.Contains(written, fakegpu.ConfigVariable) {
		t.Error("the table has the environment in it")
	}
}

// TestRehearsalOfFrameworks: nothing but their own settings limits the stand-ins.
func TestRehearsalOfFrameworks(t *testing.T) {
	t.Parallel()
	if withoutPython() {
		t.Skip("there is no python3")
	}
	c := healthy()
	c.CUDALimit = 0
	states, written, code := run(t, c, "3,4,9", nil)
	if diff := cmp.Diff(map[string]string{"3": "holds", "4": "holds", "9": "holds"}, states); diff != "" || code != 0 {
		t.Errorf("exit code %d, states (-want +got):\n%s", code, diff)
	}
	if n := strings.Count(written, ": holds ("); n != 3+3+2 || strings.Count(written, ": not run (") != 1 {
		t.Errorf("%d checks hold, want three each of rows 3 and 4, and two of row 9, whose third needs an engine", n)
	}
	before := func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TORCH_VERSION=2.9.1") }
	if states, written, _ := run(t, c, "3", before); states["3"] != "holds" || !strings.Contains(written, "shim: holds (version 2.9.1") {
		t.Errorf("before 2.10: %v", states)
	}
}

// TestOlderLibrary: calls that the driver lacks are named, and fail no row.
func TestOlderLibrary(t *testing.T) {
	t.Parallel()
	lacking := []string{"cuMemAllocAsync", "cuIpcGetMemHandle", "cuMemExportToShareableHandle", "cuDeviceGetAttribute", "cuMemGetInfo_v2"}
	older, err := fakegpu.Build(t.Context(), "", lacking...)
	if errors.Is(err, fakegpu.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	states, written, code := run(t, healthy(), "5,6", func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "--cuda-library", filepath.Join(filepath.Dir(older), fakegpu.CUDALibrary))
	})
	if diff := cmp.Diff(map[string]string{"5": "holds", "6": "holds"}, states); diff != "" || code != 0 {
		t.Errorf("exit code %d, states (-want +got):\n%s", code, diff)
	}
	for _, call := range lacking[:4] {
		if !strings.Contains(written, "not run ("+call+": the CUDA library does not have it)") {
			t.Errorf("it does not report that the library has no %s", call)
		}
	}
	if !strings.Contains(written, "unknown to the client") {
		t.Error("it does not report that the library has no cuMemGetInfo_v2")
	}
}

// TestHangingCall: a row with a call that does not return ends at its limit, and the next row runs.
func TestHangingCall(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	for call, next := range map[string]string{"cuMemCreate": "holds", "nvmlDeviceGetComputeRunningProcesses*": "not run"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			c := healthy()
			c.Hang = []string{call}
			began := time.Now()
			states, written, code := run(t, c, "6,10", func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, "--row-limit", limit.String()) })
			if took := time.Since(began); took < limit || took > 4*limit {
				t.Errorf("it took %s", took)
			}
			if diff := cmp.Diff(map[string]string{"6": "not run", "10": next}, states); diff != "" || code != 0 {
				t.Errorf("exit code %d, states (-want +got):\n%s", code, diff)
			}
			if !strings.Contains(written, "cuMemCreate: not run (stopped: the row's time was up)") {
				t.Error("it does not report that row 6 was stopped")
			}
		})
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
	ignored := func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "FRAMEWORKS_IGNORE_SETTINGS=1") }
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
			ignored},
		{"other frameworks heed no limit", "4", func(c *fakegpu.Config) { c.CUDALimit = 0 }, ignored},
		{"a cache is larger than estimated", "9", nil, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "CACHE_IS_LARGE=1") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if slices.Contains([]string{"3", "4", "9"}, tt.rows) && withoutPython() {
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

// TestPagesAgreeWithResults: pages say that no card was measured as long as RESULTS.md does.
func TestPagesAgreeWithResults(t *testing.T) {
	t.Parallel()
	says := func(file, words string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), words)
	}
	none := says("RESULTS.md", "No card has been measured.")
	for _, page := range []string{"../../README.md", "../../deploy/COMPARISON.md"} {
		if says(page, "not been measured on a GPU") != none {
			t.Errorf("no card was measured: %t in RESULTS.md; %s does not agree", none, page)
		}
	}
}

// TestAllowance: row 7's sentence has the default of policies.
func TestAllowance(t *testing.T) {
	if got := (&config.Policy{}).Allowance(1); got != 512 {
		t.Errorf("policies assume %d MiB: change allowance and the sentence of row 7 in cmd/prove/oncard", got)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/proc"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/fakegpu/pod"
)

// built is what all tests share: the fake library and the tenant.
var built struct{ library, tenant string }

// TestMain lets the test binary be the guard, and builds what it runs against.
func TestMain(m *testing.M) {
	if os.Getenv("GPUSLICE_TEST_GUARD") != "" {
		main()
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "guard")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		built.library, err = fakegpu.Build(dir)
		if errors.Is(err, fakegpu.ErrNoCompiler) {
			fmt.Println("SKIP: cmd/guard:", err)
			return 0
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		built.tenant = filepath.Join(dir, "tenant")
		build := exec.Command("go", "build", "-o", built.tenant, "github.com/gpuslice/gpuslice/test/fakegpu/tenant")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if said, err := build.CombinedOutput(); err != nil {
			fmt.Println(err, string(said))
			return 1
		}
		return m.Run()
	}())
}

// held is what a pod with one container is held to, quick enough for a test.
func held(change func(*limits.Limits)) []limits.Variable {
	l := limits.Default()
	l.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	l.Interval, l.FastInterval, l.Grace, l.TermGrace = 100*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond, time.Second
	if change != nil {
		change(&l)
	}
	return l.Env()
}

func lookup(vars []limits.Variable) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range vars {
			if v.Name == name {
				return v.Value, true
			}
		}
		return "", false
	}
}

func TestCheckSaysEachResultAndOneSentence(t *testing.T) {
	pipe := t.TempDir()
	for name, tc := range map[string]struct {
		switches string
		change   func(*limits.Limits)
		vars     []limits.Variable
		code     int
		out      string // is part of what is said
		message  string // is part of the termination message; empty: there is none
	}{
		"all as planned": {"", func(l *limits.Limits) { l.MinDriver, l.MinDeviceBytes, l.MaxDeviceBytes = "565.57.01", 80<<30, 80<<30 }, nil,
			exitOK, "ok    NVML: answers, driver 580.95.05\nok    driver: 580.95.05 as planned\nok    devices: 1 visible, 1 planned\nok    memory of GPU-00000000-0000-4000-8000-000000000000: 80Gi\n", ""},
		"an older driver": {"driver 550.54.15", func(l *limits.Limits) { l.MinDriver = "565.57.01" }, nil,
			exitFailed, "FAIL  driver", "gpuslice: this node cannot keep what the pod was promised: the node has driver 550.54.15, and the plan needs 565.57.01 or newer"},
		"a smaller device":   {"mem_mib 40960", func(l *limits.Limits) { l.MinDeviceBytes = 80 << 30 }, nil, exitFailed, "FAIL  memory", "has 40Gi, and the plan needs at least 80Gi"},
		"a larger device":    {"", func(l *limits.Limits) { l.MaxDeviceBytes = 40 << 30 }, nil, exitFailed, "FAIL  memory", "has 80Gi, and the plan is for at most 40Gi"},
		"too few devices":    {"", func(l *limits.Limits) { l.Containers[0].GPUs = 2 }, nil, exitFailed, "FAIL  devices", "1 devices are visible, and the plan gives 2"},
		"no driver":          {"init 9", nil, nil, exitFailed, "FAIL  NVML", "the node has no NVIDIA driver"},
		"no limits":          {"", nil, []limits.Variable{}, exitUsage, "", "GPUSLICE_GUARD_VERSION: not set"},
		"a newer contract":   {"", nil, []limits.Variable{{Name: limits.VersionVariable, Value: "9"}}, exitUsage, "", "this guard understands up to 1"},
		"MPS, no pipe":       {"", func(l *limits.Limits) { l.ExpectMPS, l.MPSPipeDirectory = true, "/nowhere/pipe" }, nil, exitFailed, "FAIL  MPS", "/nowhere/pipe is not there: a client would take the whole device"},
		"MPS, a dead daemon": {"", func(l *limits.Limits) { l.ExpectMPS, l.MPSPipeDirectory, l.MPSControl = true, pipe, "/bin/false" }, nil, exitFailed, "FAIL  MPS", "does not answer"},
		"MPS, a live daemon": {"", func(l *limits.Limits) { l.ExpectMPS, l.MPSPipeDirectory, l.MPSControl = true, pipe, "/bin/true" }, nil, exitOK, "ok    MPS daemon: answers", ""},
		"MPS, nothing to ask with": {"", func(l *limits.Limits) { l.ExpectMPS, l.MPSPipeDirectory, l.MPSControl = true, pipe, "/nowhere/control" }, nil,
			exitOK, "cannot be asked without nvidia-cuda-mps-control", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GPUSLICE_FAKE_GPU_SWITCHES", "within /nowhere;"+tc.switches)
			vars := tc.vars
			if vars == nil {
				vars = held(tc.change)
			}
			log := filepath.Join(t.TempDir(), "termination-log")
			var out bytes.Buffer
			code := command(t.Context(), []string{"check", "--nvml", built.library, "--termination-log", log},
				process{out: &out, err: io.Discard, lookup: lookup(vars)})
			message, _ := os.ReadFile(log)
			if code != tc.code || !strings.Contains(out.String(), tc.out) {
				t.Errorf("exit %d, said\n%s\nwant %d and\n%s", code, out.String(), tc.code, tc.out)
			}
			if tc.message == "" && len(message) > 0 || !strings.Contains(string(message), tc.message) || strings.Contains(string(message), "\n") {
				t.Errorf("the termination message is %q, want %q in it", message, tc.message)
			}
		})
	}
}

func TestTheCommandLineIsExplained(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"":                   {exitUsage, "Usage:"},
		"--help":             {exitOK, "Examples:"},
		"run --help":         {exitOK, "-dry-run"},
		"status --help":      {exitOK, "-liveness"},
		"--version":          {exitOK, "\n"},
		"dance":              {exitUsage, `unknown command "dance"`},
		"run --fast":         {exitUsage, "flag provided but not defined: -fast"},
		"run now":            {exitUsage, `unexpected argument "now"`},
		"run --log-level so": {exitUsage, "invalid value"},
	} {
		var out bytes.Buffer
		code := command(t.Context(), strings.Fields(args), process{out: &out, err: &out, lookup: lookup(nil)})
		if code != want.code || !strings.Contains(out.String(), want.text) {
			t.Errorf("guard %s: exit %d, want %d; said %q", args, code, want.code, out.String())
		}
	}
}

// running is a guard that runs as a process of its own.
type running struct {
	t   *testing.T
	pod pod.Pod
	cmd *exec.Cmd
	log *json.Decoder
}

// guardPod starts a guard over an empty pod.
func guardPod(t *testing.T, switches string, change func(*limits.Limits), args ...string) *running {
	t.Helper()
	p, err := pod.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &running{t: t, pod: p}
	g.cmd = g.itself(held(change), append([]string{"run", "--nvml", built.library, "--proc", p.Root()}, args...)...)
	g.cmd.Env = append(g.cmd.Env, "GPUSLICE_FAKE_GPU_SWITCHES=within "+p.Root()+";"+switches)
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.cmd.Process.Kill(); _ = g.cmd.Wait() })
	if err := p.Join(g.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	g.log = json.NewDecoder(out)
	return g
}

func (g *running) itself(vars []limits.Variable, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "GPUSLICE_TEST_GUARD=1")
	for _, v := range vars {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Stderr = os.Stderr
	return cmd
}

// await reads the guard's log until the message, and returns that line.
func (g *running) await(message string) map[string]any {
	g.t.Helper()
	for {
		var line map[string]any
		if err := g.log.Decode(&line); err != nil {
			g.t.Fatalf("the guard's log ended before %q: %v", message, err)
		}
		if line["msg"] == message {
			return line
		}
	}
}

// tenant starts a tenant in a container.
func (g *running) tenant(container, script string) *exec.Cmd {
	g.t.Helper()
	cmd := exec.Command(built.tenant, strings.Fields(script)...)
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := g.pod.Add(cmd.Process.Pid, container); err != nil {
		g.t.Fatal(err)
	}
	return cmd
}

// probe runs the status command as the kubelet does, in the guard's container or
// as a stranger.
func (g *running) probe(member bool, flag string) (code int, said string) {
	g.t.Helper()
	// It waits for its input, so that it is placed before it asks.
	cmd := g.itself(nil)
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `read _; exec "$@"`, "sh", "/proc/self/exe"}
	self, err := os.Executable()
	if err != nil {
		g.t.Fatal(err)
	}
	cmd.Args = append(cmd.Args[:4], self, "status", "--proc", g.pod.Root(), flag)
	in, err := cmd.StdinPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	if member {
		err = g.pod.Join(cmd.Process.Pid)
	} else {
		err = g.pod.Add(cmd.Process.Pid, "trainer")
	}
	if err != nil {
		g.t.Fatal(err)
	}
	_, _ = in.Write([]byte("\n"))
	_ = in.Close()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(out.String())
}

func TestAHogIsEndedAndTheProbeCarriesTheReasonOnce(t *testing.T) {
	t.Parallel()
	g := guardPod(t, "", nil)
	g.await("started")
	hog := g.tenant("trainer", "hold 9Gi ignore SIGTERM")
	neighbour := g.tenant("scorer", "hold 6Gi")
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
	if code, said := g.probe(true, "--liveness"); code != 1 || !strings.Contains(said, "gpuslice ended gpu:0:9216M") || !strings.Contains(said, "9Gi of 8Gi") {
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
	g := guardPod(t, "", nil, "--dry-run")
	hog := g.tenant("trainer", "hold 9Gi")
	if line := g.await("report"); line["result"] != "spared" || line["dryRun"] != true {
		t.Errorf("reported %v", line)
	}
	if err := hog.Process.Signal(present); err != nil {
		t.Errorf("the hog is gone: %v", err)
	}
}

func TestReadingsThatCannotBeReliedOnEndNobodyAndAreSaidInTime(t *testing.T) {
	t.Parallel()
	for name, switches := range map[string]string{
		"all ones": "all_ones 1", "zero": "zero 1", "PIDs of the node": "host_pids 600000", "an older driver": "driver 550.54.15",
		"lists not supported": "list 3", "a lost device": "lost 15", "a call that hangs": "hang 2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guardPod(t, switches, nil)
			hog := g.tenant("trainer", "hold 20Gi")
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
	g := guardPod(t, "", func(l *limits.Limits) { l.MaxEnds, l.Settle = 1, 50*time.Millisecond })
	first := g.tenant("trainer", "hold 9Gi")
	g.await("report")
	_ = first.Wait()
	second, third := g.tenant("trainer", "hold 9Gi"), g.tenant("trainer", "ignore SIGTERM hold 1Gi")
	g.await("end container")
	if line := g.await("report"); line["result"] != "ended" {
		t.Errorf("reported %v", line)
	}
	for _, p := range []*exec.Cmd{second, third} {
		if err := p.Wait(); err == nil {
			t.Error("a process of the container exited by itself")
		}
	}
}

func TestMetricsHaveStableNames(t *testing.T) {
	t.Parallel()
	l, err := limits.FromEnv(lookup(held(nil)))
	if err != nil {
		t.Fatal(err)
	}
	u := filled(l)
	w := httptest.NewRecorder()
	metricsHandler(u).ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/metrics", nil))
	for _, want := range []string{
		`gpuslice_guard_memory_used_bytes{container="trainer",device="gpu0"} 4096`,
		`gpuslice_guard_memory_peak_bytes{container="trainer",device="gpu0"} 8192`,
		`gpuslice_guard_memory_slice_bytes{container="trainer"} 8.589934592e+09`,
		`gpuslice_guard_memory_limit_bytes{container="trainer"} 8.589934592e+09`,
		`gpuslice_guard_memory_byte_seconds_total{container="trainer",device="gpu0"} 8192`,
		`gpuslice_guard_ends_total{container="trainer",result="ended"} 1`,
		`gpuslice_guard_warnings_total{container="trainer"} 2`,
		"gpuslice_guard_blind 1", "gpuslice_guard_blind_seconds_total 2",
		`gpuslice_guard_utilization_percent{container="trainer",device="gpu0"} 40`,
		`gpuslice_guard_look_seconds_count 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no line %q in\n%s", want, w.Body.String())
		}
	}
}

func TestASocketNameThatIsTakenIsPassedOver(t *testing.T) {
	t.Parallel()
	first, err := listen("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := listen("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	table, err := proc.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	b := &board{}
	b.saw(time.Now(), "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go serve(ctx, first, table, b)
	go serve(ctx, second, table, b)
	if a, err := ask("/proc", table, probeStartup); err != nil || !a.OK {
		t.Errorf("got %+v, %v", a, err)
	}
}

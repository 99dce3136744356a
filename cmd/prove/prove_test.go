package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/test/child"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// TestMain lets the test program be its own child, as the command is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == allocateCommand {
		os.Exit(allocate(os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// card is a simulated GPU of the test's own. Programs can load one NVML library: tests do not run in parallel.
type card struct{ node, config, nvml, cuda, cgroup string }

func newCard(t *testing.T) card {
	t.Helper()
	library, err := fakegpu.Build(t.Context(), "")
	if errors.Is(err, fakegpu.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := card{fmt.Sprintf("prove%d", os.Getpid()), filepath.Join(t.TempDir(), "config"), library,
		filepath.Join(filepath.Dir(library), fakegpu.CUDALibrary), t.TempDir()}
	// The driver's limit of a cgroup without processes: they count by the pod's.
	if err := os.WriteFile(filepath.Join(c.cgroup, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(fakegpu.ConfigVariable, c.config)
	t.Setenv(pipeVariable, "")
	return c
}

func (c card) say(t *testing.T, config fakegpu.Config) {
	t.Helper()
	config.Node = c.node
	if err := config.WriteFile(c.config); err != nil {
		t.Fatal(err)
	}
}

// prove runs the command with a slice of 1Gi, and returns the report, the exit code and what it said.
func (c card) prove(t *testing.T, args ...string) (proof.Report, int, string) {
	t.Helper()
	var out, said bytes.Buffer
	args = append([]string{"--slice", "1Gi", "--watch", "300ms", "--json", "--cuda-library", c.cuda, "--nvml-library", c.nvml}, args...)
	code := command(t.Context(), args, process{out: &out, err: &said, lookup: os.LookupEnv, cgroup: c.cgroup})
	var r proof.Report
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
	return r, code, said.String()
}

// holders are what held each way, in a line.
func holders(r proof.Report) string {
	var words []string
	for _, a := range r.Attempts {
		words = append(words, fmt.Sprintf("%s=%s", a.Way, a.Held))
	}
	return strings.Join(words, " ")
}

// guard ends any process of the card that holds more than the slice, alone or together with others, until the test ends.
func (c card) guard(t *testing.T) {
	t.Helper()
	done, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done); <-ended })
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				c.endOver(1024)
			}
		}
	}()
}

func (c card) endOver(slice int) {
	sum, last := 0, 0
	for pid, held := range c.processes() {
		sum, last = sum+held, pid
	}
	if sum > slice {
		_ = syscall.Kill(last, syscall.SIGTERM)
	}
}

// processes are those that hold memory of the card, with the MiB that each holds.
func (c card) processes() map[int]int {
	all := map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for word := range strings.SplitSeq(string(text), "\x00") {
			if amount, ok := strings.CutPrefix(word, c.node+"/gpu0="); ok {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				all[pid], _ = strconv.Atoi(strings.TrimLeft(amount[:8], "0"))
			}
		}
	}
	return all
}

func TestProve(t *testing.T) {
	held := fakegpu.Fault{CUDALimit: fakegpu.GiB, CUDALimitOf: "pod", Limits: true}
	for _, tt := range []struct {
		name   string
		config fakegpu.Config
		mps    bool
		want   string
		tier   string
		code   int
		pids   proof.Reading
		amount proof.Reading
	}{
		{"nothing holds", fakegpu.Config{}, false,
			"cuMemAlloc=nothing cuMemAllocManaged=nothing cuMemCreate=nothing many-small=nothing many-processes=nothing",
			"none", exitNotHeld, proof.Right, proof.Right},
		{"the driver holds", fakegpu.Config{Driver: "615.10", Fault: held}, false,
			"cuMemAlloc=driver cuMemAllocManaged=driver cuMemCreate=driver many-small=driver many-processes=driver",
			"driver", exitHeld, proof.Right, proof.Right},
		{"MPS holds each process, and lets go whoever leaves it",
			fakegpu.Config{Fault: fakegpu.Fault{CUDALimit: fakegpu.GiB, CUDALimitOf: "client", CUDALeaks: []string{"cuMemAllocManaged"}}}, true,
			"cuMemAlloc=mps cuMemAllocManaged=nothing cuMemCreate=mps many-small=mps many-processes=nothing mps-unset=nothing mps-elsewhere=nothing mps-limit=nothing",
			"none", exitNotHeld, proof.Right, proof.Right},
		{"MPS on a device that takes nobody else",
			fakegpu.Config{ComputeMode: "exclusive-process", Fault: fakegpu.Fault{CUDALimit: fakegpu.GiB, CUDALimitOf: "process"}}, true,
			"cuMemAlloc=mps cuMemAllocManaged=mps cuMemCreate=mps many-small=mps many-processes=nothing mps-unset=mps mps-elsewhere=mps mps-limit=mps",
			"mps", exitNotHeld, proof.Right, proof.Right},
		{"a limit of somebody's", fakegpu.Config{Fault: fakegpu.Fault{CUDALimit: fakegpu.GiB, CUDALimitOf: "process"}}, false,
			"cuMemAlloc=unknown cuMemAllocManaged=unknown cuMemCreate=unknown many-small=unknown many-processes=nothing",
			"none", exitNotHeld, proof.Right, proof.Right},
		{"a call leaks", fakegpu.Config{Driver: "615.10",
			Fault: fakegpu.Fault{CUDALimit: fakegpu.GiB, CUDALimitOf: "pod", Limits: true, CUDALeaks: []string{"cuMemCreate"}}}, false,
			"cuMemAlloc=driver cuMemAllocManaged=driver cuMemCreate=nothing many-small=driver many-processes=driver",
			"none", exitNotHeld, proof.Right, proof.Right},
		{"a lying driver", fakegpu.Config{Fault: fakegpu.Fault{Figures: "zero"}}, false,
			"cuMemAlloc=nothing cuMemAllocManaged=nothing cuMemCreate=nothing many-small=nothing many-processes=nothing",
			"none", exitNotHeld, proof.Right, proof.Missing},
		{"a driver with PIDs of the node",
			fakegpu.Config{Fault: fakegpu.Fault{PIDs: "+4000000", CUDALimit: fakegpu.GiB, CUDALimitOf: "pod", Limits: true}}, false,
			"cuMemAlloc=driver cuMemAllocManaged=driver cuMemCreate=driver many-small=driver many-processes=driver",
			"driver", exitHeld, proof.Wrong, proof.Missing},
		{"a whole device that nobody else is on", fakegpu.Config{Fault: fakegpu.Fault{Memory: fakegpu.GiB}}, false,
			"cuMemAlloc=hardware cuMemAllocManaged=hardware cuMemCreate=hardware many-small=hardware many-processes=hardware",
			"hardware", exitHeld, proof.Right, proof.Right},
		{"a MIG instance", fakegpu.Config{Fault: fakegpu.Fault{MIG: []string{"1g.1gb"}}}, false,
			"cuMemAlloc=hardware cuMemAllocManaged=hardware cuMemCreate=hardware many-small=hardware many-processes=hardware",
			"hardware", exitHeld, proof.Right, proof.Right},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCard(t)
			c.say(t, tt.config)
			if tt.mps {
				t.Setenv(pipeVariable, t.TempDir())
			}
			r, code, said := c.prove(t)
			if diff := cmp.Diff(tt.want, holders(r)); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if r.Tier() != tt.tier || code != tt.code {
				t.Errorf("tier %s, want %s; exit code %d, want %d", r.Tier(), tt.tier, code, tt.code)
			}
			if r.Readings == nil || r.Readings.PIDs != tt.pids || r.Readings.Amounts != tt.amount {
				t.Errorf("readings %+v, want PIDs %s, amounts %s", r.Readings, tt.pids, tt.amount)
			}
			for _, a := range r.Attempts {
				if most := int64(1<<30 + leastPast); a.ReachedBytes > most {
					t.Errorf("%s held %d, at most %d are announced", a.Way, a.ReachedBytes, most)
				}
			}
			if left := c.processes(); len(left) > 0 {
				t.Errorf("processes hold memory after the end: %v", left)
			}
			if t.Failed() {
				t.Logf("%+v\n%s", r, said)
			}
		})
	}
}

// TestProveDevice: NVML does not heed CUDA_VISIBLE_DEVICES, and CUDA does. The device that is filled is the one that is read.
func TestProveDevice(t *testing.T) {
	for _, tt := range []struct {
		name, visible string
		config        fakegpu.Config
		args          []string
		device        string
	}{
		{"the first, and CUDA would take the second", "1", fakegpu.Config{Devices: 2}, nil, "GPU-00000000-0000-4000-8000-000000000000"},
		{"the second, and CUDA has one", "0", fakegpu.Config{Devices: 2}, []string{"--device", "1"}, "GPU-00000000-0000-4000-8000-000000000001"},
		{"the second instance", "", fakegpu.Config{Fault: fakegpu.Fault{MIG: []string{"1g.2gb", "1g.2gb"}}},
			[]string{"--device", "1"}, "MIG-00000000-0000-5000-8000-000000000001"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCard(t)
			c.say(t, tt.config)
			t.Setenv(visibleVariable, tt.visible)
			r, code, said := c.prove(t, append(tt.args, "--way", "cuMemAlloc")...)
			if r.Device != tt.device || r.Readings == nil || r.Readings.PIDs != proof.Right ||
				r.Readings.Amounts != proof.Right || code != exitNotHeld {
				t.Errorf("exit code %d, device %s, readings %+v\n%s", code, r.Device, r.Readings, said)
			}
		})
	}
}

func TestNothingTried(t *testing.T) {
	c := newCard(t)
	c.say(t, fakegpu.Config{})
	r, code, said := c.prove(t, "--way", "mps-unset")
	if code != exitUnknown || len(r.Attempts) > 0 || !strings.Contains(said, "mps-unset: left out") {
		t.Errorf("exit code %d, %+v\n%s", code, r, said)
	}
}

// TestEnd: programs that do not end by themselves are ended, all of them.
func TestEnd(t *testing.T) {
	a := &attempt{events: make(chan event, 64)}
	for range 3 {
		cmd := exec.Command("sleep", "1000")
		ended, err := child.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		a.commands, a.pids = append(a.commands, cmd), append(a.pids, cmd.Process.Pid)
	}
	done := make(chan struct{})
	go func() { defer close(done); a.end(50 * time.Millisecond) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for ever")
	}
	for _, pid := range a.pids {
		if running(pid) {
			t.Errorf("PID %d runs", pid)
		}
	}
}

// TestStopped: only a device that is unavailable tells that it takes clients of the daemon alone.
func TestStopped(t *testing.T) {
	for code, want := range map[int]proof.Holder{46: proof.MPS, 805: "", 806: "", 807: "", 808: "", 809: ""} {
		a := &attempt{}
		a.stopped(t.Context(), said{Code: code, Failure: "cuDevicePrimaryCtxRetain"}, time.Now())
		if got := a.seen.Attempt(proof.MPSUnset).Held; got != want {
			t.Errorf("error %d: held by %q, want %q", code, got, want)
		}
	}
}

func TestKernelKills(t *testing.T) {
	for name, tt := range map[string]struct {
		file, text string
		n          int
		known      bool
	}{
		"version 2":  {"memory.events", "low 0\noom 4\noom_kill 3\n", 3, true},
		"version 1":  {"memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", 2, true},
		"old kernel": {"memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0, false},
		"none":       {"other", "", 0, false},
	} {
		o := options{cgroup: t.TempDir()}
		path := filepath.Join(o.cgroup, tt.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if n, known := o.kernelKills(); n != tt.n || known != tt.known {
			t.Errorf("%s: %d, %t", name, n, known)
		}
	}
}

func TestProveGuard(t *testing.T) {
	t.Run("tells how long the guard took, and what it does not see", func(t *testing.T) {
		c := newCard(t)
		c.say(t, fakegpu.Config{})
		c.guard(t)
		r, code, said := c.prove(t, "--watch", "8s")
		if got, want := holders(r),
			"cuMemAlloc=guard cuMemAllocManaged=nothing cuMemCreate=guard many-small=guard many-processes=guard"; got != want {
			t.Errorf("held %s, want %s\n%s", got, want, said)
		}
		if r.Tier() != "guard" || code != exitNotHeld {
			t.Errorf("tier %s, exit code %d", r.Tier(), code)
		}
		for _, a := range r.Attempts {
			if (a.Held == proof.Guard) != (a.ReactionMilliseconds > 0) {
				t.Errorf("%s was held by %s after %d ms", a.Way, a.Held, a.ReactionMilliseconds)
			}
		}
	})
}

func TestProveNeighbors(t *testing.T) {
	c := newCard(t)
	t.Run("are not hurt unless it was agreed to", func(t *testing.T) {
		c.say(t, fakegpu.Config{Fault: fakegpu.Fault{Others: 20 * fakegpu.GiB}})
		r, code, said := c.prove(t, "--way", "cuMemAlloc")
		if code != exitUsage || len(r.Attempts) > 0 || !strings.Contains(said, "--yes") {
			t.Errorf("exit code %d, %+v\n%s", code, r, said)
		}
		if r, code, said = c.prove(t, "--way", "cuMemAlloc", "--yes"); code != exitNotHeld || holders(r) != "cuMemAlloc=nothing" {
			t.Errorf("with --yes: exit code %d, %+v\n%s", code, r, said)
		}
	})
	t.Run("keep what is left of a full device", func(t *testing.T) {
		c.say(t, fakegpu.Config{Fault: fakegpu.Fault{Others: 78*fakegpu.GiB + 700*fakegpu.MiB}})
		r, code, said := c.prove(t, "--way", "cuMemAlloc", "--yes")
		if code != exitUnknown || len(r.Attempts) != 1 || r.Attempts[0].Held != "" || !strings.Contains(r.Attempts[0].Detail, "not tried") {
			t.Errorf("exit code %d, %+v\n%s", code, r, said)
		}
	})
}

func TestCommand(t *testing.T) {
	t.Run("exit codes", func(t *testing.T) {
		for args, want := range map[string]int{
			"--version": exitHeld, "--help": exitHeld, "": exitUsage, "--slice 4X": exitUsage,
			"--slice 4Gi --way luck": exitUsage, "--slice 4Gi --past 8Gi": exitUsage,
			"--slice 4Gi --watch 1h": exitUsage, "--slice 4Gi more": exitUsage, "--slice 99999999Gi": exitUsage,
			"--slice 4Gi --yes --way cuMemAlloc --cuda-library /nonexistent --nvml-library /nonexistent": exitUnknown,
		} {
			var out bytes.Buffer
			if code := command(t.Context(), strings.Fields(args),
				process{out: &out, err: &out, lookup: func(string) (string, bool) { return "", false }}); code != want {
				t.Errorf("%q: exit code %d, want %d\n%s", args, code, want, out.String())
			}
		}
	})
	t.Run("the report is left for the kubelet", func(t *testing.T) {
		c := newCard(t)
		c.say(t, fakegpu.Config{})
		message := filepath.Join(t.TempDir(), "termination-log")
		r, _, _ := c.prove(t, "--way", "cuMemAlloc", "--termination-message-path", message)
		text, err := os.ReadFile(message)
		if err != nil {
			t.Fatal(err)
		}
		var left proof.Report
		if err := json.Unmarshal(text, &left); err != nil || !cmp.Equal(left, r) || len(text) > 4096 {
			t.Errorf("left %s: %v", text, err)
		}
	})
}

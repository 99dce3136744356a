package gpu

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// libraries are built once for all tests: the fake NVML, and one of an older
// driver that lacks what came later, and one that has only another version of a function.
var libraries struct{ whole, old, other string }

func TestMain(m *testing.M) {
	ctx := context.Background()
	var err error
	libraries.whole, err = fakegpu.Build(ctx, "")
	if err == nil {
		libraries.old, err = fakegpu.Build(ctx, "", "nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2",
			"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMemoryLimits_v1", "nvmlDeviceGetMigMode", "nvmlDeviceGetProcessUtilization")
	}
	if err == nil {
		libraries.other, err = fakegpu.Build(ctx, "", "nvmlDeviceGetMemoryInfo")
	}
	if errors.Is(err, fakegpu.ErrNoCompiler) {
		fmt.Println("SKIP: guard/gpu:", err)
		return
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// node is one test's own: its library sees no other test's processes.
type node struct {
	t       *testing.T
	name    string
	config  string
	letters map[int]string // by which letter the test calls a process
}

// newNode sets the config. Since that is in the environment, tests of the library do not
// run in parallel.
func newNode(t *testing.T, c fakegpu.Config) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{t: t, name: rand.Text(), config: filepath.Join(dir, "config"), letters: map[int]string{}}
	n.configure(c)
	t.Setenv(fakegpu.ConfigVariable, n.config)
	t.Setenv(fakegpu.NodeVariable, filepath.Join(dir, "no-proc"))
	return n
}

// configure changes the config.
func (n *node) configure(c fakegpu.Config) {
	n.t.Helper()
	c.Node = n.name
	if err := c.WriteFile(n.config); err != nil {
		n.t.Fatal(err)
	}
}

// start starts a process that uses what the words name, until the test ends. The first is
// called a.
func (n *node) start(words ...string) *exec.Cmd {
	n.t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", "read _"}, words...)...)
	for i := range words {
		cmd.Args[3+i] = n.name + "/" + words[i]
	}
	if _, err := cmd.StdinPipe(); err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.letters[cmd.Process.Pid] = string(rune('a' + len(n.letters)))
	n.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func driver(t *testing.T, o Options) *Driver {
	t.Helper()
	if o.Library == "" {
		o.Library = libraries.whole
	}
	return New(o)
}

func readDevices(t *testing.T, d *Driver, maxAge time.Duration) []guard.Device {
	t.Helper()
	devices, err := d.Read(t.Context(), maxAge)
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

// short describes devices as "UUID-tail used/total: process=MiB".
func (n *node) short(devices []guard.Device) string {
	var text strings.Builder
	for _, d := range devices {
		fmt.Fprintf(&text, "%s %d/%d", d.ID[len(d.ID)-4:], d.UsedBytes>>20, d.TotalBytes>>20)
		if d.Fault != "" {
			fmt.Fprintf(&text, " fault %s", d.Fault)
		}
		var processes []string
		for _, p := range d.Processes {
			processes = append(processes, n.process(p))
		}
		slices.Sort(processes) // the order is that of PIDs, which may begin anew
		fmt.Fprintln(&text, strings.Join(append([]string{""}, processes...), " "))
	}
	return text.String()
}

// process describes a process; one that the test did not start goes by its number.
func (n *node) process(p guard.Process) string {
	text := n.letters[p.PID]
	if text == "" {
		text = fmt.Sprint(p.PID)
	}
	text += "="
	if p.Known {
		text += fmt.Sprint(p.UsedBytes >> 20)
	}
	if p.MPS {
		text += "mps"
	}
	return text
}

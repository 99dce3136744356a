package fakegpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpu is a loaded library, with the config that it reads. One process can load only one,
// so tests that use it do not run in parallel.
type gpu struct {
	nvml.Interface
	config, node string
	pids         map[int]string // by which letter a test calls a process
}

// load opens the library as programs do.
func load(t *testing.T) *gpu {
	t.Helper()
	dir := t.TempDir()
	g := &gpu{config: filepath.Join(dir, "config"), node: fmt.Sprintf("t%d", os.Getpid()), pids: map[int]string{}}
	t.Setenv(ConfigVariable, dir) // a folder, as containers mount it
	t.Setenv(NodeVariable, filepath.Join(dir, "no-proc"))
	g.say(t, Config{})
	g.Interface = nvml.New(nvml.WithLibraryPath(build(t, "")))
	if ret := g.Init(); ret != nvml.SUCCESS {
		t.Fatalf("nvmlInit: %v", ret)
	}
	t.Cleanup(func() { g.say(t, Config{}); g.Shutdown() })
	return g
}

// say changes the config, for this test's own node.
func (g *gpu) say(t *testing.T, c Config) {
	t.Helper()
	c.Node = g.node
	if err := c.WriteFile(g.config); err != nil {
		t.Fatal(err)
	}
}

// start starts a process that holds what the word says, and calls it by a letter.
func (g *gpu) start(t *testing.T, letter, word string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: sleep, Args: []string{g.node + "/" + word, "600"}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.pids[cmd.Process.Pid] = letter
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func (g *gpu) device(t *testing.T, index int) nvml.Device {
	t.Helper()
	d, ret := g.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		t.Fatalf("open device %d: %v", index, ret)
	}
	return d
}

// reading is what a device says, in lines: the total, and each list that is not empty.
func (g *gpu) reading(d nvml.Device) string {
	var text strings.Builder
	memory, ret := d.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		fmt.Fprintf(&text, "total: %v\n", ret)
	} else {
		fmt.Fprintf(&text, "total: %d of %d\n", memory.Used>>20, memory.Total>>20)
	}
	compute, ret := d.GetComputeRunningProcesses()
	text.WriteString(g.list("compute", compute, ret))
	graphics, ret := d.GetGraphicsRunningProcesses()
	text.WriteString(g.list("graphics", graphics, ret))
	clients, ret := d.GetMPSComputeRunningProcesses()
	text.WriteString(g.list("mps", clients, ret))
	return text.String()
}

// list is one list in a line, in the order of its text.
func (g *gpu) list(name string, list []nvml.ProcessInfo, ret nvml.Return) string {
	if ret != nvml.SUCCESS {
		return fmt.Sprintf("%s: %v\n", name, ret)
	}
	var entries []string
	for _, p := range list {
		entry := fmt.Sprintf("%s=%d", g.letter(p.Pid), p.UsedGpuMemory>>20)
		if p.UsedGpuMemory == ^uint64(0) {
			entry = g.letter(p.Pid) + "=?"
		}
		if p.GpuInstanceId != ^uint32(0) {
			entry += fmt.Sprintf("@%d.%d", p.GpuInstanceId, p.ComputeInstanceId)
		}
		entries = append(entries, entry)
	}
	if len(entries) == 0 {
		return ""
	}
	slices.Sort(entries)
	return name + ": " + strings.Join(entries, " ") + "\n"
}

// letter is the test's name of a process; what it does not know it calls by number.
func (g *gpu) letter(pid uint32) string {
	if letter, ok := g.pids[int(pid)]; ok {
		return letter
	}
	if letter, ok := g.pids[int(pid)-offset]; ok {
		return letter + "'"
	}
	return fmt.Sprint(pid)
}

// offset is what tests add to PIDs, so that they are those of no process.
const offset = 5000000

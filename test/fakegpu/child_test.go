package fakegpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"
)

// roleVariable makes the test program another process's part: what one process has
// loaded cannot be loaded otherwise.
const roleVariable = "FAKEGPU_TEST_ROLE"

func TestMain(m *testing.M) {
	role, library, _ := strings.Cut(os.Getenv(roleVariable), " ")
	switch role {
	case "":
		os.Exit(m.Run())
	case "namespace":
		if err := ownProc(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	tellReading(library)
}

// tellReading prints what a process that loads the library learns of device 0, and of a
// function that it may lack.
func tellReading(library string) {
	g := gpu{Interface: nvml.New(nvml.WithLibraryPath(library)), pids: map[int]string{}}
	if ret := g.Init(); ret != nvml.SUCCESS {
		fmt.Println(ret)
		return
	}
	if err := g.Extensions().LookupSymbol("nvmlDeviceGetMigMode"); err != nil {
		fmt.Println("no MIG mode")
	}
	d, ret := g.DeviceGetHandleByIndex(0)
	if ret != nvml.SUCCESS {
		fmt.Println(ret)
		return
	}
	fmt.Print(g.reading(d))
}

// child runs the test program in a role, with a config given as text.
func child(t *testing.T, role, library string, c Config, attributes *syscall.SysProcAttr, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role+" "+library, ConfigVariable+"="+c.String()+"devices=1\n")
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = attributes
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", role, err, out)
	}
	return string(out)
}

func TestOlderDriver(t *testing.T) {
	t.Run("lacks newer functions", func(t *testing.T) {
		g := load(t)
		tenant := g.start(t, "a", "gpu0=1GiB")
		lists := func(version string) []string {
			var names []string
			for _, kind := range []string{"Compute", "Graphics", "MPSCompute"} {
				names = append(names, "nvmlDeviceGet"+kind+"RunningProcesses"+version)
			}
			return names
		}
		newest, newer := lists("_v3"), append(lists("_v3"), lists("_v2")...)
		reading := fmt.Sprintf("total: 1024 of 81920\ncompute: %d=1024\n", tenant.Process.Pid)
		tests := []struct {
			name    string
			without []string
			want    string
		}{
			{"has the lists' second form", newest, reading},
			{"has their first form", newer, reading},
			{"has no MIG, which is found before it is called", []string{"nvmlDeviceGetMigMode"}, "no MIG mode\n" + reading},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				library := build(t, "", tt.without...)
				if diff := cmp.Diff(tt.want, child(t, "reader", library, Config{Node: g.node}, nil)); diff != "" {
					t.Errorf("reading (-want +got):\n%s", diff)
				}
			})
		}
	})
}

func TestMissingFunction(t *testing.T) {
	t.Run("ends whoever calls it unasked", func(t *testing.T) {
		library := build(t, "", "nvmlDeviceGetMemoryInfo")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVariable+"=reader "+library)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "symbol lookup error") {
			t.Errorf("as with a real library the dynamic linker ends the process: %v\n%s", err, out)
		}
	})
}

// nodeProc is where the process in a namespace of its own finds the node's /proc.
const nodeProc = "FAKEGPU_TEST_NODE_PROC"

// ownProc mounts this PID namespace's /proc, and the node's where the test says.
func ownProc() error {
	node := os.Getenv(nodeProc)
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if node != "" {
		if err := syscall.Mount("/proc", node, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("bind the node's /proc: %w", err)
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return err
	}
	// It ends with its PID namespace, whose first process this is.
	return (&exec.Cmd{Path: sleep, Args: []string{os.Getenv("FAKEGPU_TEST_WORD"), "600"}}).Start()
}

func TestPIDNamespace(t *testing.T) {
	t.Run("hides the neighbors", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("a new PID namespace with a /proc of its own needs root")
		}
		g := load(t)
		outside := g.start(t, "a", "gpu0=1GiB")
		library := build(t, "")
		node := filepath.Join(t.TempDir(), "proc")
		if err := os.Mkdir(node, 0o755); err != nil {
			t.Fatal(err)
		}
		alone := []string{"FAKEGPU_TEST_WORD=" + g.node + "/gpu0=2GiB"}
		onNode := append([]string{nodeProc + "=" + node, NodeVariable + "=" + node}, alone...)
		tests := []struct {
			name   string
			config Config
			env    []string
			want   func(string) bool
		}{
			{"without the node's /proc it sees itself", Config{}, alone, func(s string) bool {
				return s == "total: 2048 of 81920\ncompute: "+pidOf(s)+"=2048\n"
			}},
			{"with it the total is the node's and the list its own", Config{}, onNode, func(s string) bool {
				return s == "total: 3072 of 81920\ncompute: "+pidOf(s)+"=2048\n" && len(pidOf(s)) < 3
			}},
			{"a driver of 2023 lists the node's processes by the node's numbers", Config{Fault: Fault{PIDs: "node"}}, onNode, func(s string) bool {
				return strings.HasPrefix(s, "total: 3072 of 81920\n") &&
					strings.Contains(s, fmt.Sprintf("%d=1024", outside.Process.Pid)) && strings.Contains(s, "=2048")
			}},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				tt.config.Node = g.node
				namespaces := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
				if got := child(t, "namespace", library, tt.config, namespaces, tt.env...); !tt.want(got) {
					t.Errorf("reading (outside is %d):\n%s", outside.Process.Pid, got)
				}
			})
		}
	})
}

// pidOf is the first PID of a reading's compute list.
func pidOf(reading string) string {
	_, list, _ := strings.Cut(reading, "compute: ")
	pid, _, _ := strings.Cut(list, "=")
	return pid
}

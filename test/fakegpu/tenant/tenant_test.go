package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// scene is a device, and tenants on a node of this test's own.
type scene struct {
	library nvml.Interface
	program string
	node    string
}

// built is what all scenes share: the fake library and the tenant, or why there is none.
var built struct {
	library, tenant string
	err             error
}

func TestMain(m *testing.M) {
	built.library, built.tenant, built.err = fakegpu.BuildForTests(context.Background())
	status := m.Run()
	if built.tenant != "" {
		_ = os.RemoveAll(filepath.Dir(built.tenant))
	}
	os.Exit(status)
}

func newScene(t *testing.T) *scene {
	t.Helper()
	if errors.Is(built.err, fakegpu.ErrNoCompiler) {
		t.Skip(built.err)
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	s := &scene{program: built.tenant, node: fmt.Sprintf("tenant%d", os.Getpid())}
	t.Setenv(fakegpu.ConfigVariable, fakegpu.Config{Node: s.node}.String())
	s.library = nvml.New(nvml.WithLibraryPath(built.library))
	if ret := s.library.Init(); ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	t.Cleanup(func() { s.library.Shutdown() })
	return s
}

// start starts a tenant; it and its children end with the test.
func (s *scene) start(t *testing.T, steps ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(s.program, append([]string{"node", s.node}, steps...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

// held is what the device lists by PID, in MiB.
func (s *scene) held(t *testing.T) map[int]int {
	t.Helper()
	d, ret := s.library.DeviceGetHandleByIndex(0)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	list, ret := d.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	found := map[int]int{}
	for _, p := range list {
		found[int(p.Pid)] = int(p.UsedGpuMemory >> 20)
	}
	return found
}

// await looks at the device until the readings have become so, and returns all amounts
// that the process was seen with.
func (s *scene) await(t *testing.T, what string, pid int, until func(map[int]int) bool) []int {
	t.Helper()
	var seen []int
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		held := s.held(t)
		if amount := held[pid]; len(seen) == 0 || seen[len(seen)-1] != amount {
			seen = append(seen, amount)
		}
		if until(held) {
			return seen
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: never, seen were %v", what, seen)
		}
	}
}

func TestTenantGrows(t *testing.T) {
	t.Run("in small steps, and never shows anything else", func(t *testing.T) {
		s := newScene(t)
		cmd, _ := s.start(t, "hold 999MiB", "grow 999MiB 2100MiB 400ms")
		pid := cmd.Process.Pid
		seen := s.await(t, "grow", pid, func(held map[int]int) bool { return held[pid] == 2100 })
		if seen[0] == 0 {
			seen = seen[1:] // before it came to hold anything
		}
		if len(seen) < 5 || !slices.IsSorted(seen) || seen[0] < 999 {
			t.Errorf("not a climb from 999 to 2100: %v", seen)
		}
	})
}

func TestTenantSpike(t *testing.T) {
	t.Run("passes", func(t *testing.T) {
		s := newScene(t)
		cmd, _ := s.start(t, "hold 1GiB", "wait 200ms", "spike 9GiB 200ms")
		pid := cmd.Process.Pid
		s.await(t, "before", pid, func(held map[int]int) bool { return held[pid] == 1024 })
		s.await(t, "spike", pid, func(held map[int]int) bool { return held[pid] == 9216 })
		s.await(t, "after", pid, func(held map[int]int) bool { return held[pid] == 1024 })
	})
}

func TestTenantSay(t *testing.T) {
	t.Run("prints a word when it gets there", func(t *testing.T) {
		s := newScene(t)
		cmd, lines := s.start(t, "hold 1GiB", "wait 100ms", "hold 2GiB", "say crossed")
		awaitLine(t, lines, "crossed\n")
		if held := s.held(t)[cmd.Process.Pid]; held != 2048 {
			t.Errorf("it held %d MiB when it said so", held)
		}
	})
}

func TestTenantFork(t *testing.T) {
	t.Run("forked processes hold their own and outlive their parent", func(t *testing.T) {
		s := newScene(t)
		cmd, _ := s.start(t, "hold 1GiB", "fork 2 2GiB")
		pid := cmd.Process.Pid
		s.await(t, "three processes", pid, func(held map[int]int) bool { return total(held) == 5*1024 && len(held) == 3 })
		cmd.Process.Kill()
		s.await(t, "two orphans", pid, func(held map[int]int) bool { return total(held) == 4*1024 && len(held) == 2 })
	})
}

func TestTenantReexec(t *testing.T) {
	t.Run("holds the same under the same PID", func(t *testing.T) {
		s := newScene(t)
		cmd, lines := s.start(t, "hold 1GiB", "wait 300ms", "reexec", "wait 300ms", "hold 3GiB")
		pid := cmd.Process.Pid
		s.await(t, "before", pid, func(held map[int]int) bool { return held[pid] == 1024 })
		seen := s.await(t, "after", pid, func(held map[int]int) bool { return held[pid] == 3072 })
		if !slices.Equal(seen, []int{1024, 3072}) {
			t.Errorf("it was seen with %v", seen)
		}
		firsts := 0
		for firsts < 2 {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("after %d images: %v", firsts, err)
			}
			if strings.HasPrefix(line, fmt.Sprintf("beat 1 pid=%d ", pid)) {
				firsts++
			}
		}
	})
}

func TestTenantSignal(t *testing.T) {
	t.Run("ends a tenant that does not ignore it", func(t *testing.T) {
		s := newScene(t)
		tests := []struct {
			name   string
			steps  []string
			status int // -1: it lives on
			after  int // MiB on the device
		}{
			{"it goes", []string{"hold 1GiB"}, 143, 0},
			{"it ignores it", []string{"hold 1GiB", "ignore-term"}, -1, 1024},
			{"it forks while it goes", []string{"hold 1GiB", "fork-on-term 2GiB"}, 143, 2048},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				cmd, lines := s.start(t, tt.steps...)
				pid := cmd.Process.Pid
				s.await(t, "start", pid, func(held map[int]int) bool { return held[pid] == 1024 })
				cmd.Process.Signal(syscall.SIGTERM)
				awaitLine(t, lines, "term\n")
				if tt.status < 0 {
					awaitLine(t, lines, "beat ")
					cmd.Process.Signal(syscall.SIGTERM)
					awaitLine(t, lines, "term\n")
				}
				s.await(t, "end", pid, func(held map[int]int) bool { return total(held) == tt.after })
				if tt.status < 0 {
					return
				}
				if state, err := cmd.Process.Wait(); err != nil || state.ExitCode() != tt.status {
					t.Errorf("it ended with %v, %v", state, err)
				}
			})
		}
	})
}

func TestTenantExitAfter(t *testing.T) {
	t.Run("ends when its time is over", func(t *testing.T) {
		s := newScene(t)
		for _, steps := range [][]string{{"hold 1GiB", "exit-after 100ms"}, {"hold 1GiB", "wait 100ms", "leave"}} {
			cmd, _ := s.start(t, steps...)
			if state, err := cmd.Process.Wait(); err != nil || state.ExitCode() != 0 {
				t.Errorf("%q: %v, %v", steps, state, err)
			}
		}
	})
}

func TestTenantUser(t *testing.T) {
	t.Run("runs as any user without an environment", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("to start a program as another user needs root")
		}
		s := newScene(t)
		for dir := filepath.Dir(s.program); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := &exec.Cmd{Path: s.program, Dir: "/", Env: []string{"A="}, Stderr: os.Stderr,
			Args: []string{"tenant", "node", s.node, "hold 1GiB", "fork 1 1GiB"}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}, Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			cmd.Wait()
		})
		s.await(t, "two processes", cmd.Process.Pid, func(held map[int]int) bool { return len(held) == 2 && total(held) == 2048 })
	})
}

func awaitLine(t *testing.T, lines *bufio.Reader, prefix string) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("no line %q: %v", prefix, err)
		}
		if strings.HasPrefix(line, prefix) {
			return
		}
	}
}

func total(held map[int]int) (sum int) {
	for _, amount := range held {
		sum += amount
	}
	return sum
}

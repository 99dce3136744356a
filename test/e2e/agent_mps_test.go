package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/child"
)

// pluginPipe is where NVIDIA's device plugin keeps the pipes of a daemon.
const pluginPipe = "/run/nvidia/mps/gpu.mps/pipe"

// startPluginMPS lays out the pipes of a daemon of NVIDIA's device plugin, and starts a process that is its server.
func startPluginMPS() (server int, err error) {
	if err := os.MkdirAll(pluginPipe, 0o755); err != nil {
		return 0, err
	}
	// The check is not root here.
	if err := os.Chmod(pluginPipe, 0o777); err != nil {
		return 0, err
	}
	if err := unix.Mkfifo(filepath.Join(pluginPipe, "control"), 0o666); err != nil {
		return 0, err
	}
	program := filepath.Join(mpsFolder, "nvidia-cuda-mps-server")
	if out, err := exec.Command("cp", "/bin/sleep", program).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	cmd := exec.Command(program, "3600")
	if _, err := child.Start(cmd); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// TestAgentMPSEvader: a process that evades the daemon is terminated, and no client of the daemon.
func TestAgentMPSEvader(t *testing.T) {
	t.Parallel()
	s := withAgent(t, "policy=mps-agent")
	server, err := startPluginMPS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(server, syscall.SIGKILL) })
	clients := filepath.Join(pluginPipe, "clients")
	if err := os.WriteFile(clients, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	on := []string{"node " + agentNode, "device 0"}
	s.create(slice("8Gi", "client", clientOfMPS("trainer", append(on, "hold 7GiB")...)))
	pid := s.processes(s.awaitRunning("client"), "trainer")[0]
	if err := os.WriteFile(clients, fmt.Appendf(nil, "%d %d 4026531836 /tenant\n", pid, server), 0o644); err != nil {
		t.Fatal(err)
	}
	s.create(once(slice("8Gi", "evader", clientOfMPS("trainer", append(on, "kind C", "hold 12GiB")...))))
	told := s.awaitTerminated("evader")
	s.neverNoticed("client", "trainer", 10)
	abuse.Report(t,
		abuse.Attempt{Threat: "A7", Attack: "evade the MPS daemon, against an agent", Outcome: abuse.Contained, Words: told.Message})
}

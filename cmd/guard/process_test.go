package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/fakegpu/pod"
)

// running is a guard that runs as a process of its own.
type running struct {
	t      *testing.T
	pod    pod.Pod
	status string // the guard's termination log
	cmd    *exec.Cmd
	log    *json.Decoder
}

// guardPod starts a guard over an empty pod.
func guardPod(t *testing.T, c fakegpu.Config, change func(*limits.Limits), args ...string) *running {
	t.Helper()
	p, err := pod.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &running{t: t, pod: p, status: filepath.Join(t.TempDir(), "termination-log")}
	if err := os.WriteFile(g.status, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g.cmd = g.itself(environment(change),
		append([]string{"run", "--nvml-library", built.library, "--proc-dir", p.Root(), "--termination-message-path", g.status}, args...)...)
	g.cmd.Env = append(g.cmd.Env, p.Environment(c)...)
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

// tenant starts a tenant of device 0 in a container.
func (g *running) tenant(container, script string) *exec.Cmd {
	g.t.Helper()
	cmd := exec.Command(built.tenant, "device 0", "node", g.pod.Node(), script)
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := g.pod.Add(cmd.Process.Pid, container); err != nil {
		g.t.Fatal(err)
	}
	return cmd
}

// probe runs the status command as the kubelet does.
func (g *running) probe(flag string) (code int, text string) {
	g.t.Helper()
	cmd := g.itself(nil, "status", "--termination-message-path", g.status, flag)
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		g.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out))
}

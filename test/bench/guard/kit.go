package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/fakegpu/pod"
)

// kit is the measured program, and its baseline.
type kit struct {
	dir, guard, agent, tenant, library string
	size                               int64
}

// build makes guard and tenant in dir, and the library.
func build(ctx context.Context, dir string) (*kit, error) {
	k := &kit{dir: dir, guard: filepath.Join(dir, "guard"), agent: filepath.Join(dir, "agent"), tenant: filepath.Join(dir, "tenant")}
	var err error
	if k.library, err = fakegpu.Build(ctx, ""); err != nil {
		return nil, err
	}
	const module = "github.com/gpuslice/gpuslice/"
	for out, pkg := range map[string]string{k.guard: "cmd/guard", k.agent: "cmd/agent", k.tenant: "test/fakegpu/tenant"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, module+pkg)
		cmd.Env = append(os.Environ(), "CGO_CFLAGS=-Wno-deprecated-declarations")
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", pkg, err, output)
		}
	}
	info, err := os.Stat(k.guard)
	if err != nil {
		return nil, err
	}
	k.size = info.Size()
	return k, nil
}

// guarded is a pod with a running guard.
type guarded struct {
	kit    *kit
	pod    pod.Pod
	status string // the guard's termination log
	cmd    *exec.Cmd
}

// start runs a guard over an empty pod whose container "trainer" has 8 GiB.
func (k *kit) start(change func(*limits.Limits), log io.Writer, env ...string) (*guarded, error) {
	root, err := os.MkdirTemp(k.dir, "pod")
	if err != nil {
		return nil, err
	}
	g := &guarded{kit: k, status: root + "-termination-log"}
	if err := os.WriteFile(g.status, nil, 0o644); err != nil {
		return nil, err
	}
	if g.pod, err = pod.New(root); err != nil {
		return nil, err
	}
	l := limits.Default()
	l.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	if change != nil {
		change(&l)
	}
	g.cmd = exec.Command(k.guard, "run", "--nvml-library", k.library, "--proc-dir", root, "--termination-message-path", g.status)
	g.cmd.Env = append(append(os.Environ(), env...), g.pod.Environment(fakegpu.Config{})...)
	for _, v := range l.Env() {
		g.cmd.Env = append(g.cmd.Env, v.Name+"="+v.Value)
	}
	g.cmd.Stdout, g.cmd.Stderr = log, os.Stderr
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	return g, g.pod.Join(g.cmd.Process.Pid)
}

func (g *guarded) stop() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
}

// run starts a tenant of device 0 in the container and returns it with its stdout.
func (g *guarded) run(script string) (*exec.Cmd, io.Reader, error) {
	cmd := exec.Command(g.kit.tenant, "device 0", "node", g.pod.Node(), script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	return cmd, out, g.pod.Add(cmd.Process.Pid, "trainer")
}

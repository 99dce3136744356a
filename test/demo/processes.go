package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/child"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/fakegpu/pod"
)

// local runs what is in a pod as processes of this machine: the guard with the environment that the webhook gave it, and the tenant.
// The guard sees the pod's processes in a folder that stands for /proc.
type local struct {
	pod.Pod
	programs programs
	status   string // the guard's termination log
	guardLog io.ReadCloser
	printed  locked // by the tenant
	guard    *exec.Cmd
	ended    <-chan error // the tenant's end
	stop     []func()
}

// locked collects what one goroutine writes and another reads.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startLocal starts the processes of a pod as it came out of the webhook, in the order of its containers.
func startLocal(ctx context.Context, p programs, dir string, object *unstructured.Unstructured) (l *local, err error) {
	var made corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &made); err != nil {
		return nil, err
	}
	root := filepath.Join(dir, made.Name)
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	l = &local{programs: p, status: root + "-termination-log"}
	if err := os.WriteFile(l.status, nil, 0o644); err != nil {
		return nil, err
	}
	if l.Pod, err = pod.New(root); err != nil {
		return nil, err
	}
	if err = l.startGuard(&made); err == nil {
		err = l.probe(ctx, "--startup", func(ok bool, _ string) bool { return ok })
	}
	if err == nil {
		err = l.startTenant(&made.Spec.Containers[0])
	}
	if err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

func (l *local) startGuard(made *corev1.Pod) error {
	for _, c := range made.Spec.InitContainers {
		if c.Name != limits.GuardContainer {
			continue
		}
		l.guard = exec.Command(l.programs.guard,
			append(c.Args, "--nvml-library", l.programs.library, "--proc-dir", l.Root(), "--termination-message-path", l.status)...)
		l.guard.Env = append(os.Environ(), l.Environment(fakegpu.Config{})...)
		for _, v := range c.Env {
			l.guard.Env = append(l.guard.Env, v.Name+"="+v.Value)
		}
		log, write, err := os.Pipe()
		if err != nil {
			return err
		}
		defer write.Close()
		l.guardLog, l.guard.Stdout = log, write
		ended, err := child.Start(l.guard)
		if err != nil {
			return fmt.Errorf("start the guard: %w", err)
		}
		l.stop = append(l.stop, func() { _ = l.guard.Process.Kill(); <-ended })
		return l.Join(l.guard.Process.Pid)
	}
	return fmt.Errorf("pod %s has no container %s", made.Name, limits.GuardContainer)
}

func (l *local) startTenant(c *corev1.Container) error {
	cmd := exec.Command(l.programs.tenant, append([]string{"node " + l.Node()}, c.Args...)...)
	cmd.Stdout, cmd.Stderr = &l.printed, &l.printed
	ended, err := child.Start(cmd)
	if err != nil {
		return fmt.Errorf("start the tenant: %w", err)
	}
	once := make(chan error, 2)
	go func() { err := <-ended; once <- err; once <- err }()
	l.ended = once
	l.stop = append(l.stop, func() { _ = cmd.Process.Kill(); <-once })
	return l.Add(cmd.Process.Pid, c.Name)
}

// probe runs the guard's status command, as the kubelet does for its probes, until done accepts its success and its
// output.
func (l *local) probe(ctx context.Context, form string, done func(ok bool, said string) bool) error {
	for {
		out, err := exec.CommandContext(ctx, l.programs.guard, "status", form, "--termination-message-path", l.status).Output()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			return err
		}
		if done(err == nil, strings.TrimSpace(string(out))) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the guard's probe %s: %s: %w", form, out, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (l *local) end() {
	for _, stop := range l.stop {
		stop()
	}
	if l.guardLog != nil {
		_ = l.guardLog.Close()
	}
}

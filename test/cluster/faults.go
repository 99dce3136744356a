package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// PID is the process of one of the parts ("etcd", "kube-apiserver", "kube-controller-manager").
func (s *APIServer) PID(name string) (int, error) {
	i := slices.IndexFunc(s.parts, func(p *run.Process) bool { return p.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("%s: it does not run here", name)
	}
	return s.parts[i].PID(), nil
}

// Pause stops one of the parts where it stands, until the function
// that is returned is called.
func (s *APIServer) Pause(name string) (resume func(), err error) {
	pid, err := s.PID(name)
	if err != nil {
		return nil, fmt.Errorf("pause %w", err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("pause %s: %w", name, err)
	}
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }, nil
}

// Restart kills kube-apiserver and starts it again on the same port, with its stored objects. It returns once it is
// ready.
func (s *APIServer) Restart(ctx context.Context) error {
	const name = "kube-apiserver"
	i := slices.IndexFunc(s.parts, func(p *run.Process) bool { return p.Name == name })
	if i < 0 {
		return fmt.Errorf("restart %s: it does not run here", name)
	}
	args := s.parts[i].Args()
	s.parts[i].Kill()
	p, err := run.Start(s.Dir, name, exec.Command(filepath.Clean(args[0]), args[1:]...))
	if err != nil {
		return err
	}
	s.parts[i] = p
	return s.awaitReady(ctx)
}

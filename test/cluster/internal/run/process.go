package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gpuslice/gpuslice/test/child"
)

// Process is a running part of a cluster.
type Process struct {
	// Name is the program's, Log the file of its output.
	Name, Log string

	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended
	err  error         // why it ended; read after done
}

// Start runs cmd, whose output goes to name.log in the folder logs. It dies with this process, however
// that ends.
func Start(logs, name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, Log: filepath.Join(logs, name+".log"), cmd: cmd, done: make(chan struct{})}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	// A group of its own: an interrupt from the terminal is for the test, which then stops it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ended, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = <-ended
		close(p.done)
	}()
	return p, nil
}

// PID returns the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Args are the program and its arguments.
func (p *Process) Args() []string { return p.cmd.Args }

// Kill ends the process at once and waits until it is gone. Clusters are thrown away, so there is nothing
// that an orderly end would save.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Failure returns nil while the process runs, and else why it ended, with the last lines of its log.
func (p *Process) Failure() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return fmt.Errorf("%s ended (%v) and its log cannot be read: %w", p.Name, p.err, err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s ended (%v); the end of its log:\n%s", p.Name, p.err, strings.Join(lines[max(0, len(lines)-12):], "\n"))
}

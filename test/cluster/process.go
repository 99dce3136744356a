package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// spawn starts cmd on a thread of its own, which lives until cmd ends: the kernel sends a parent-death
// signal when the thread that started the child goes, not only when the whole process does. What Wait
// returned arrives on the channel.
func spawn(cmd *exec.Cmd) (<-chan error, error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return ended, <-started
}

// process is a running part of a cluster. Its output goes to a log file.
type process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{} // closed once it has ended
	err       error         // why it ended; read after done
}

// startProcess runs program with args; what it prints goes to name.log in the folder logs. It dies with
// this process, however that ends.
func startProcess(logs, name, program string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(logs, name+".log"), cmd: exec.Command(program, args...), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	defer out.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// A group of its own: an interrupt from the terminal is for the test, which then stops it in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	ended, err := spawn(p.cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = <-ended
		close(p.done)
	}()
	return p, nil
}

// kill ends the process at once and waits until it is gone. Clusters are thrown away, so there is nothing
// that an orderly end would save.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// failure returns why the process has ended, with the last lines of its log.
func (p *process) failure() error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s ended (%w) and its log cannot be read", p.name, p.err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s ended: %w; the end of its log:\n%s", p.name, p.err, strings.Join(lines[max(0, len(lines)-12):], "\n"))
}

// Package child starts programs that end with the test that started them, and not before.
package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd and returns where the result of its Wait arrives. The program gets a parent-death signal, SIGKILL unless
// cmd has another one.
//
// The kernel sends that signal when the thread that started the program ends, not only when the whole process does. Go ends a
// thread with the goroutine that is locked to it. So cmd starts on a thread of its own, which lives as long as the program.
func Start(cmd *exec.Cmd) (<-chan error, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if cmd.SysProcAttr.Pdeathsig == 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
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

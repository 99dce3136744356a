package box

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/test/child"
)

// enterGroups is the first life of process 1: once it has been put into its cgroups it makes them the root of its view,
// and starts itself again. It returns only errors.
func enterGroups() error {
	goPipe := os.NewFile(goFile, "go")
	if _, err := io.ReadAll(goPipe); err != nil {
		return fmt.Errorf("wait for cgroups: %w", err)
	}
	goPipe.Close()
	// A new cgroup namespace is the calling thread's alone; exec leaves no other thread.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fail(fmt.Errorf("make cgroup namespace: %w", err))
	}
	exe, err := os.Executable()
	if err != nil {
		return fail(fmt.Errorf("find own program: %w", err))
	}
	return fail(fmt.Errorf("start again: %w", syscall.Exec(exe, os.Args, stage(stageInit))))
}

// fail reports to the outside why there will be no box.
func fail(err error) error {
	report := os.NewFile(reportFile, "report")
	defer report.Close()
	if _, werr := fmt.Fprint(report, err); werr != nil {
		return errors.Join(err, werr)
	}
	return err
}

// stage returns this process's environment for the next stage.
func stage(name string) []string {
	env := os.Environ()
	for i, v := range env {
		if strings.HasPrefix(v, stageVariable+"=") {
			env[i] = stageVariable + "=" + name
		}
	}
	return env
}

// initialise is the second life of process 1: it sets the box up, runs the program proper and returns its
// exit status. With process 1 everything in the box ends.
func initialise(dir string) (int, error) {
	unix.CloseOnExec(reportFile)
	for _, setUp := range []func(string) error{setUpMounts, setUpNetwork} {
		if err := setUp(dir); err != nil {
			return 1, fail(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return 1, fail(fmt.Errorf("find own program: %w", err))
	}
	cmd := exec.Command(exe)
	cmd.Args, cmd.Env = os.Args, stage(stageInside)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		return 1, fail(fmt.Errorf("start program: %w", err))
	}
	go func() {
		for s := range signals {
			cmd.Process.Signal(s) // it may just have ended
		}
	}()
	os.NewFile(reportFile, "report").Close()
	return child.Reap(cmd.Process.Pid)
}

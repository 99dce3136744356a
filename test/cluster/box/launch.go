package box

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/gpuslice/gpuslice/test/child"
)

// Files that process 1 inherits.
const (
	goFile     = 3 // ends once the process is in its cgroups
	reportFile = 4 // takes the reason if the box cannot be set up, and ends once it is
)

// PIDFile returns the file, in the folder dir of a box, with the number of its process 1 as seen from
// outside: by its namespaces the box can be entered.
func PIDFile(dir string) string { return filepath.Join(dir, "pid") }

// launch starts cmd as process 1 of new namespaces and groups, and returns its exit status.
func launch(cmd *exec.Cmd, groups []string, dir string) (int, error) {
	goRead, goWrite, err := os.Pipe()
	if err != nil {
		return 1, fmt.Errorf("make pipe: %w", err)
	}
	defer goWrite.Close()
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return 1, fmt.Errorf("make pipe: %w", err)
	}
	defer reportRead.Close()
	cmd.ExtraFiles = []*os.File{goRead, reportWrite}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		// The terminal's interrupt reaches this process only, which passes it on once.
		Setpgid: true,
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	defer signal.Stop(signals)

	ended, err := child.Start(cmd)
	goRead.Close()
	reportWrite.Close()
	if err != nil {
		return 1, fmt.Errorf("%w: start a process in new namespaces: %w", ErrUnsupported, err)
	}
	if err := admit(cmd.Process.Pid, groups, dir); err != nil {
		cmd.Process.Kill()
		<-ended
		return 1, err
	}
	goWrite.Close()
	if why, err := io.ReadAll(reportRead); err != nil || len(why) > 0 {
		<-ended
		return 1, fmt.Errorf("%w: %s", ErrUnsupported, why)
	}
	return status(wait(cmd, ended, signals))
}

// admit puts the new process 1 into its cgroups and notes its number.
func admit(pid int, groups []string, dir string) error {
	for _, g := range groups {
		if err := os.WriteFile(filepath.Join(g, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
			return fmt.Errorf("%w: join cgroup: %w", ErrUnsupported, err)
		}
	}
	if err := os.WriteFile(PIDFile(dir), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return fmt.Errorf("note process of box: %w", err)
	}
	return nil
}

// wait returns how the box ended, passing signals on to it until then.
func wait(cmd *exec.Cmd, ended <-chan error, signals <-chan os.Signal) error {
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			cmd.Process.Signal(s) // it may just have ended
		}
	}
}

// status turns the error of exec.Cmd.Wait into an exit status.
func status(err error) (int, error) {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("box ended: %w", err)
	}
	return 0, nil
}

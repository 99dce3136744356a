package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Under Pod Security "restricted" the guard runs as its tenant's user.
func TestRunIsClosedToItsUser(t *testing.T) {
	t.Parallel()
	user := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // root without capabilities is as any user
		user.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	control := startAs(t, user, exec.Command("/bin/sh", "-c", "echo started; read _"))
	g := &running{t: t}
	guarding := startAs(t, user, g.itself(environment(nil), "run", "--nvml-library", "/nowhere", "--termination-message-path", "/nowhere"))
	read := func(pid int) error {
		cmd := exec.Command("/bin/cat", fmt.Sprintf("/proc/%d/environ", pid))
		cmd.SysProcAttr = user
		return cmd.Run()
	}
	if err := read(control); err != nil {
		t.Fatalf("a process of the same user is closed: %v", err)
	}
	if err := read(guarding); err == nil {
		t.Error("a process of the same user read the guard's environment")
	}
}

// startAs starts a command as a user and returns its PID once it has printed
// "started".
func startAs(t *testing.T, user *syscall.SysProcAttr, cmd *exec.Cmd) int {
	t.Helper()
	cmd.SysProcAttr = user
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "started") {
			return cmd.Process.Pid
		}
	}
	t.Fatal("it ended before it started")
	return 0
}

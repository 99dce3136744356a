package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the tenant, as its scripts start it again.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "tenant" || len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
	}
	os.Exit(m.Run())
}

// begin starts a tenant and returns it with its heartbeat.
func begin(t *testing.T, script string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", strings.Fields(script)...)
	cmd.Args[0] = "tenant"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// await reads the heartbeat until a line matches, and returns its PID.
func await(t *testing.T, beats *bufio.Scanner, pattern string) int {
	t.Helper()
	want := regexp.MustCompile(pattern)
	deadline := time.Now().Add(20 * time.Second)
	for beats.Scan() {
		if want.MatchString(beats.Text()) {
			pid, _ := strconv.Atoi(strings.Fields(beats.Text())[0])
			return pid
		}
		if time.Now().After(deadline) {
			break
		}
	}
	t.Fatalf("no heartbeat matches %q", pattern)
	return 0
}

func comm(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestATenantIsNamedForWhatItHolds(t *testing.T) {
	t.Parallel()
	cmd, beats := begin(t, "hold 4Gi sleep 300ms grow to 9Gi over 200ms")
	await(t, beats, "alive 4096Mi")
	await(t, beats, "alive 9216Mi")
	if got := comm(t, cmd.Process.Pid); got != "gpu:0:9216M" {
		t.Errorf("named %q", got)
	}
}

func TestASpikeComesBack(t *testing.T) {
	t.Parallel()
	_, beats := begin(t, "device 1 hold 1Gi spike 2Gi for 400ms")
	await(t, beats, "alive 2048Mi")
	pid := await(t, beats, "alive 1024Mi")
	if got := comm(t, pid); got != "gpu:1:1024M" {
		t.Errorf("named %q", got)
	}
}

func TestATenantThatIgnoresSIGTERMGoesOn(t *testing.T) {
	t.Parallel()
	cmd, beats := begin(t, "ignore SIGTERM hold 1Gi")
	await(t, beats, "alive 1024Mi")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		await(t, beats, "alive 1024Mi")
	}
}

func TestAChildIsForkedOnSIGTERM(t *testing.T) {
	t.Parallel()
	cmd, beats := begin(t, "hold 1Gi fork on SIGTERM")
	await(t, beats, "alive 1024Mi")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for await(t, beats, "alive 1024Mi") == cmd.Process.Pid {
	}
}

func TestAWorkerComesBackWhenItIsEnded(t *testing.T) {
	t.Parallel()
	_, beats := begin(t, "refork 2Gi")
	first := await(t, beats, "alive 2048Mi")
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for await(t, beats, "alive 2048Mi") == first {
	}
}

func TestAReexecKeepsPIDAndMemory(t *testing.T) {
	t.Parallel()
	cmd, beats := begin(t, "device 1 hold 1Gi reexec sleep 200ms hold 3Gi")
	if pid := await(t, beats, "alive 3072Mi"); pid != cmd.Process.Pid {
		t.Errorf("became %d, was %d", pid, cmd.Process.Pid)
	}
	if got := comm(t, cmd.Process.Pid); got != "gpu:1:3072M" {
		t.Errorf("named %q", got)
	}
}

func TestAScriptThatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"dance", "hold", "hold 4", "hold -1Gi", "grow 9Gi", "grow to 9Gi over", "spike 9Gi", "ignore SIGKILL", "fork on SIGHUP", "sleep long", "exit x"} {
		cmd, _ := begin(t, script)
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf("%q: %v", script, err)
		}
	}
	cmd, _ := begin(t, "exit 3")
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("exit 3: %v", err)
	}
}

package cluster

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// holdVariable makes TestHold start a cluster and keep it.
const holdVariable = "GPUSLICE_TEST_HOLD"

// TestHold is the process that TestKilledRunLeavesNothing kills.
func TestHold(t *testing.T) {
	if os.Getenv(holdVariable) == "" {
		t.Skip("runs only as the child of TestKilledRunLeavesNothing")
	}
	s := ForTest(t, Options{})
	fmt.Printf("holding %s", s.Dir)
	for _, p := range s.parts {
		fmt.Printf(" %d", p.PID())
	}
	fmt.Println()
	io.Copy(io.Discard, os.Stdin)
}

func TestKilledRunLeavesNothing(t *testing.T) {
	if !Wanted("apiserver") {
		t.Skip("starts a real API server: set GPUSLICE_TEST=apiserver to run it")
	}
	child := exec.Command(os.Args[0], "-test.run=^TestHold$")
	child.Env = append(os.Environ(), holdVariable+"=1")
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	words := strings.Fields(line)
	child.Process.Kill()
	child.Wait()
	if err != nil || len(words) != 4 || words[0] != "holding" {
		t.Fatalf("child said %q, %v", line, err)
	}
	for _, word := range words[2:] {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "end of the killed run's process "+word, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	}
	sweep()
	if _, err := os.Stat(words[1]); !os.IsNotExist(err) {
		t.Errorf("folder %s of the killed run is still there (%v)", words[1], err)
	}
}

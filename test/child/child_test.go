package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOutlivesTheThread ends the thread that asked for the program, as Go does when the goroutine that is locked to it returns.
func TestOutlivesTheThread(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	var ended <-chan error
	var err error
	awaitEnd(t, onThread(func() { ended, err = Start(cmd) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil || strings.Contains(string(status), ") Z ") {
		t.Fatalf("the program ended with the thread that asked for it: %s %v", status, err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the program ended with the thread that asked for it: %v", err)
	default:
	}
}

// onThread runs f on a thread that ends afterwards, and returns its number. The first thread of a process is not one: Go keeps it.
func onThread(f func()) int {
	done := make(chan int)
	go func() {
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			done <- onThread(f)
			return
		}
		f()
		done <- syscall.Gettid()
	}()
	return <-done
}

// awaitEnd returns once the thread of this process is gone.
func awaitEnd(t *testing.T, thread int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread)); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	t.Fatalf("thread %d is still there", thread)
}

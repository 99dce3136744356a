package box

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// childVariable makes this test's program run one of the functions below in a box.
const childVariable = "GPUSLICE_TEST_BOX_CHILD"

func TestMain(m *testing.M) {
	child := os.Getenv(childVariable)
	if child == "" {
		os.Exit(m.Run())
	}
	b := Box{
		Prepare: func(_ context.Context, dir string) error {
			return os.WriteFile(filepath.Join(dir, "prepared"), []byte("yes"), 0o600)
		},
		Inside: map[string]func(string) int{"look": look, "hold": hold}[child],
	}
	code, err := b.Run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// look prints what the box looks like from inside.
func look(dir string) int {
	host, err := os.Hostname()
	prepared, perr := os.ReadFile(filepath.Join(dir, "prepared"))
	werr := os.WriteFile("/var/lib/gpuslice-box-test", nil, 0o600)
	fmt.Println(dir, host, os.Getppid(), string(prepared), err, perr, werr)
	return 7
}

// hold leaves a process in a group of its own below the box's and waits for ever.
func hold(dir string) int {
	groups, err := filepath.Glob(groupRoot + "/*/cgroup.procs")
	if err != nil || len(groups) == 0 {
		fmt.Println("no cgroups", err)
		return 1
	}
	if err := os.Mkdir(filepath.Join(filepath.Dir(groups[0]), "below"), 0o755); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := exec.Command("sleep", "1000").Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(dir)
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// inBox prepares this program to run a function in a box, or skips the test.
func inBox(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	if !run.Wanted("node") {
		t.Skip("makes namespaces and cgroups: set GPUSLICE_TEST=node to run it, as root")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestBox(t *testing.T) {
	t.Run("is a machine of its own and leaves nothing", func(t *testing.T) {
		cmd := inBox(t, "look")
		out, err := cmd.Output()
		words := strings.Fields(string(out))
		if cmd.ProcessState.ExitCode() != 7 || len(words) != 7 {
			t.Fatalf("exit status %d (%v), want 7; said %q", cmd.ProcessState.ExitCode(), err, out)
		}
		if got, want := strings.Join(words[1:], " "), NodeName+" 1 yes <nil> <nil> <nil>"; got != want {
			t.Errorf("inside: host name, parent, prepared file and errors are %q, want %q", got, want)
		}
		if _, err := os.Stat("/var/lib/gpuslice-box-test"); !os.IsNotExist(err) {
			t.Errorf("a file written to /var/lib in the box is seen outside (%v)", err)
		}
		for _, left := range leftovers(t, words[0]) {
			t.Errorf("left behind: %s", left)
		}
	})
}

func TestKilledBox(t *testing.T) {
	t.Run("is swept", func(t *testing.T) {
		cmd := inBox(t, "hold")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			t.Fatalf("said %q, %v", line, err)
		}
		dir := strings.TrimSpace(line)
		Sweep()
		if len(leftovers(t, dir)) < 2 {
			t.Error("a box that is alive was swept")
		}
		cmd.Process.Kill()
		cmd.Wait()
		start := time.Now()
		Sweep()
		for _, left := range leftovers(t, dir) {
			t.Errorf("left behind %s after the kill: %s", time.Since(start), left)
		}
	})
}

// leftovers returns what there still is outside of the box with folder dir.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	id := filepath.Base(dir)
	left, err := filepath.Glob(groupRoot + "/*/" + id)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(groupRoot, id)} {
		if _, err := os.Stat(path); err == nil {
			left = append(left, path)
		}
	}
	return left
}

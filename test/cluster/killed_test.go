package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gpuslice/gpuslice/test/cluster/box"
)

// holdVariable makes this test's program start something and keep it until it is killed.
const holdVariable = "GPUSLICE_TEST_HOLD"

func TestMain(m *testing.M) {
	hold := map[string]func(context.Context) error{"apiserver": holdAPIServer, "node": holdNode}[os.Getenv(holdVariable)]
	if hold == nil {
		os.Exit(m.Run())
	}
	if err := hold(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// holdAPIServer prints its folder and the numbers of its processes.
func holdAPIServer(ctx context.Context) error {
	bin, err := Build(ctx, os.Stderr, ControlPlane()...)
	if err != nil {
		return err
	}
	s, err := StartAPIServer(ctx, Options{Bin: bin})
	if err != nil {
		return err
	}
	fmt.Print(s.Dir)
	for _, p := range s.parts {
		fmt.Print(" ", p.PID())
	}
	fmt.Println()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// holdNode prints the folder of a box with a node in it, and a kubectl that reaches it from outside.
func holdNode(ctx context.Context) error {
	code, err := InBox(ctx, os.Stderr, nil, func() int {
		n, err := StartNode(ctx, NodeOptions{})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		kubectl, err := n.WriteKubectl(n.Dir)
		fmt.Println(n.Dir, kubectl, err)
		io.Copy(io.Discard, os.Stdin)
		return 0
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d", code)
	}
	return err
}

// hold starts this test's program so that it holds a tier, and returns the words that it printed.
func hold(t *testing.T, tier string) (*exec.Cmd, []string) {
	t.Helper()
	if !Wanted(tier) {
		t.Skipf("set GPUSLICE_TEST=%s to run it", tier)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), holdVariable+"="+tier)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 3 || !filepath.IsAbs(words[0]) {
		child.Process.Kill()
		child.Wait()
		t.Fatalf("child said %q, %v", line, err)
	}
	return child, words
}

func TestKilledAPIServer(t *testing.T) {
	t.Run("leaves nothing", func(t *testing.T) {
		child, words := hold(t, "apiserver")
		child.Process.Kill()
		child.Wait()
		for _, word := range words[1:] {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			await(t, "end of the killed run's process "+word, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
		}
		sweep()
		if _, err := os.Stat(words[0]); !os.IsNotExist(err) {
			t.Errorf("folder %s of the killed run is still there (%v)", words[0], err)
		}
	})
}

func TestKilledNode(t *testing.T) {
	t.Run("leaves nothing", func(t *testing.T) {
		child, words := hold(t, "node")
		out, err := exec.Command(words[1], "get", "nodes", "--output=name").CombinedOutput()
		if err != nil || string(out) != "node/"+box.NodeName+"\n" {
			t.Errorf("kubectl from outside says %q, %v", out, err)
		}
		child.Process.Kill()
		child.Wait()
		box.Sweep()
		if _, err := os.Stat(words[0]); !os.IsNotExist(err) {
			t.Errorf("folder %s of the killed run is still there (%v)", words[0], err)
		}
		for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
			if left, err := filepath.Glob(pattern + filepath.Base(words[0])); err != nil || len(left) > 0 {
				t.Errorf("cgroups of the killed run are still there: %v %v", left, err)
			}
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil || strings.Contains(string(mounts), words[0]) {
			t.Errorf("mounts of the killed run are still there (%v)", err)
		}
	})
}

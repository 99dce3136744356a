package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

// mpsResource is what the pool of the cluster's own MPS daemon is offered as.
const mpsResource = "example.com/gpu.mps"

// mpsFolder has the pipe directories that the policies name.
const mpsFolder = "/run/mps"

// startMPS offers a device under a daemon of the cluster's own, and lays out the pipes of one that lives, without a
// client as yet, and one that is dead.
func startMPS(ctx context.Context, n *install.OnNode) error {
	for _, f := range []string{"alive", "dead", "log"} {
		if err := os.MkdirAll(filepath.Join(mpsFolder, f), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(mpsFolder, "alive", "clients"), nil, 0o644); err != nil {
		return err
	}
	if err := n.Label(ctx, map[string]string{"example.com/mps": "host"}); err != nil {
		return err
	}
	return offerMPS(ctx, n, "mps")
}

// offerMPS starts the device plugin of the MPS pool, whose log is called by name. It does not outlive the kubelet that it
// registers with.
func offerMPS(ctx context.Context, n *install.OnNode, name string) error {
	if _, err := n.StartPlugin(name, "-resource="+mpsResource, "-replicas=4", "-env=NVIDIA_VISIBLE_DEVICES=0"); err != nil {
		return err
	}
	return n.AwaitAllocatable(ctx, mpsResource, 4)
}

// clientOfMPS is a tenant that requests a slice of the MPS pool.
func clientOfMPS(name string, steps ...string) corev1.Container {
	c := tenant(name, append([]string{"kind M+C"}, steps...)...)
	c.Resources.Limits = corev1.ResourceList{mpsResource: resource.MustParse("1")}
	return c
}

func TestMPSDaemonDead(t *testing.T) {
	t.Parallel()
	t.Run("stops the pod with one sentence", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "mps-dead", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "client", clientOfMPS("trainer", "hold 4GiB"))))
		p := s.awaitPod("client", "failure of the check", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
		end := status(p, limits.CheckContainer).State.Terminated
		if end == nil {
			t.Fatalf("the check has not ended: %+v", p.Status)
		}
		for _, want := range []string{"MPS daemon at /run/mps/dead does not answer", "a client would take the whole device"} {
			if !strings.Contains(end.Message, want) {
				t.Errorf("the check said %q, want %q in it", end.Message, want)
			}
		}
		if strings.Contains(end.Message, "\n") {
			t.Errorf("the check said more than one line: %q", end.Message)
		}
	})
}

func TestMPSClient(t *testing.T) {
	t.Parallel()
	t.Run("is terminated through the daemon before any signal", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "mps", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "client", clientOfMPS("trainer", "hold 4GiB", "wait 8s", "hold 9GiB"))))
		p := s.awaitRunning("client")
		pid := s.processes(p, "trainer")[0]
		inode, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		if err != nil {
			t.Fatal(err)
		}
		inode = strings.TrimSuffix(strings.TrimPrefix(inode, "pid:["), "]")
		clients := fmt.Sprintf("%d 500 %s /tenant\n", pid, inode)
		if err := os.WriteFile(filepath.Join(mpsFolder, "alive", "clients"), []byte(clients), 0o644); err != nil {
			t.Fatal(err)
		}
		s.awaitEnd("client", "trainer")
		told := s.awaitSaid("client", "termination result", "gpuslice terminated tenant")
		abuse.Report(t, abuse.Attempt{Threat: "A28", Attack: "an MPS client goes past its slice", Outcome: abuse.Contained, Words: told.Message})
		asked := askedOfMPS(t, fmt.Sprintf("terminate_client 500 %d", pid))
		if term := s.termTime("client", "trainer"); !asked.Before(term) {
			t.Errorf("the daemon was asked at %v, after the signal at %v", asked, term)
		}
	})
}

// askedOfMPS is when the living daemon was given a command.
func askedOfMPS(t *testing.T, command string) time.Time {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(mpsFolder, "alive", "said"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		at, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		if said != command {
			continue
		}
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	t.Fatalf("the daemon was asked\n%s\nand not %q", text, command)
	return time.Time{}
}

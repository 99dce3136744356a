package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

// command runs the command line against the node's cluster, and fails the test unless it ends with code and says all
// of texts.
func (s *stage) command(code int, args []string, texts ...string) {
	s.Helper()
	got, out := s.tryCommand(args)
	if got != code {
		s.Errorf("%s: exit %d, want %d", strings.Join(args, " "), got, code)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.Errorf("%s does not say %q", strings.Join(args, " "), text)
		}
	}
	if s.Failed() {
		s.Logf("%s\n%s", strings.Join(args, " "), out)
	}
}

// awaitCommand runs the command line, which reads what changes, until it succeeds and prints the text.
func (s *stage) awaitCommand(args []string, text string) {
	s.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(s.Context(), time.Second, within, true, func(context.Context) (bool, error) {
		code, out := s.tryCommand(args)
		last = out
		return code == 0 && strings.Contains(out, text), nil
	})
	if err != nil {
		s.Errorf("%s does not say %q, but\n%s", strings.Join(args, " "), text, last)
	}
}

// tryCommand returns how the command line ended, and what it printed.
func (s *stage) tryCommand(args []string) (code int, printed string) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), install.Command(box.Dir()), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.node.Kubeconfig)
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		s.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestDoctor: what NVIDIA's own device plugin and feature discovery wrote is understood.
// The plugin runs on the node itself, so that there is no DaemonSet to see, nor a toolkit's.
func TestDoctor(t *testing.T) {
	t.Parallel()
	t.Run("recognizes a node with NVIDIA's plugin", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{})
		s.command(4, []string{"doctor"},
			"nvidia.com/gpu.shared by time-slicing, 4 replicas a device", "drivers: driver 565.57 or later",
			"no DaemonSet looks like NVIDIA's device plugin",
			"visible-devices: whether any pod may set NVIDIA_VISIBLE_DEVICES cannot be seen from the API", "replicas: 3 of 3 replicas are ready")
		s.command(0, []string{"verify", "-n", s.namespace},
			"slice: a pod of namespace "+s.namespace+" comes out in a slice", "denial: a pod of namespace "+s.namespace)
	})
}

// TestExplain: the pod ends with its one container, so that no probe carries the guard's sentence, and
// its log does.
func TestExplain(t *testing.T) {
	t.Parallel()
	t.Run("shows what terminated a pod", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, "", fakegpu.Config{Devices: devices})
		s.create(once(slice("8Gi", "hog", sliced("trainer", "hold 2GiB", "wait 2s", "grow 2GiB 9GiB 2s"))))
		s.awaitPhase("hog", corev1.PodFailed)
		s.command(0, []string{"explain", "hog", "-n", s.namespace},
			"trainer: 1 nvidia.com/gpu, memory 8Gi", "because trainer exited with code 143", "because gpuslice terminated tenant", "time-slicing")
	})
}

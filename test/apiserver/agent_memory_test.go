package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/fakegpu/pod"
)

// agentLimit is the agent's memory limit in its DaemonSet, and largePods are how many pods of 1 MB pass it, of those that
// have ended and of those that have not.
const (
	agentLimit  = 128 << 20
	mostOfLimit = agentLimit * 7 / 8 // with GOMEMLIMIT, garbage is left lying up to 100 MiB
	largePods   = 140
)

// TestAgentAmongLargePods: whoever may make pods can bind any number of them to a node. They count in no GPU quota and run nothing.
func TestAgentAmongLargePods(t *testing.T) {
	t.Parallel()
	s := without(t, cluster.Options{}, "10-namespace.yaml")
	if err := s.Namespace(t.Context(), "team-a", nil); err != nil {
		t.Fatal(err)
	}
	s.largePods(t, "gpu-1", largePods)
	binary := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, "github.com/gpuslice/gpuslice/cmd/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	library, err := fakegpu.Build(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, feature := range map[string]string{"a streamed list": "true", "a list in pages": "false"} {
		t.Run(name, func(t *testing.T) {
			peak, took := s.startAgent(t, binary, library, "KUBE_FEATURE_WatchListClient="+feature)
			t.Logf("%s of %d + %d pods of 1 MB: ready after %s, at most %d MiB", name, largePods,
				largePods, took.Round(100*time.Millisecond), peak>>20)
			if peak > mostOfLimit {
				t.Errorf("it took %d MiB of its limit of %d MiB", peak>>20, agentLimit>>20)
			}
			abuse.Report(t,
				abuse.Attempt{Threat: "A9", Attack: "fill a node with pods of 1 MB, then have its agent start: " + name, Outcome: abuse.Contained,
					Words: fmt.Sprintf("it is ready, and has taken less than %d MiB", mostOfLimit>>20)})
		})
	}
}

// largePods makes pods of a node: so many that wait for its kubelet, and as many that have failed.
func (s *bare) largePods(t *testing.T, nodeName string, each int) {
	t.Helper()
	pods := s.Client.CoreV1().Pods("team-a")
	large := func(name string) error {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{
			Name: "main", Image: "a", Env: []corev1.EnvVar{{Name: "FILL", Value: strings.Repeat("x", 1_000_000)}}}}}}
		if _, err := pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			return err
		}
		if strings.HasPrefix(name, "waits") {
			return nil
		}
		_, err := pods.Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
		return err
	}
	var makers sync.WaitGroup
	for _, kind := range []string{"waits", "failed"} {
		makers.Go(func() {
			for i := range each {
				if err := large(fmt.Sprintf("%s-%d", kind, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	if makers.Wait(); t.Failed() {
		t.FailNow()
	}
}

// startAgent runs an agent of gpu-1 until it is ready. It returns the most memory that the agent has had, and how long that took.
func (s *bare) startAgent(t *testing.T, binary, library string, env ...string) (peak int, took time.Duration) {
	t.Helper()
	n, err := pod.NewNode(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	var log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, binary, "--node=gpu-1", "--kubeconfig="+s.Kubeconfig, "--listen="+address, "--nvml-library="+library,
		"--proc-dir="+n.Root(), "--device-plugins="+t.TempDir())
	cmd.Env = append(append(os.Environ(), n.Environment(fakegpu.Config{})...), append(env, "GOMEMLIMIT=100MiB")...)
	cmd.Stdout, cmd.Stderr = &log, &log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		if _ = cmd.Wait(); t.Failed() {
			t.Log(log.String())
		}
	}()
	until(t, "the agent is not ready", func() (bool, string) {
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK, answer.Status
	})
	return peakMemory(t, cmd.Process.Pid), time.Since(began)
}

// peakMemory is the most resident memory that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

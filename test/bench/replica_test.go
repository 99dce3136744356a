package bench

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// TestPrintWhatAReplicaUses prints what the requests of the Deployment rest on: CPU and the most memory of one replica
// that answers everything, with the Deployment's GOMEMLIMIT, at rest, under many creates, and under many of pods as large as they come.
func TestPrintWhatAReplicaUses(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	ctx, dir := t.Context(), t.TempDir()
	binary, err := install.Binary(ctx, dir, "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	i, err := install.New(ctx, server, binary, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	setUp(t, i)
	fmt.Printf("%-34s %10s %12s %14s %12s\n", "one replica", "creates/s", "CPU cores", "CPU a create", "memory")
	const rest = 20 * time.Second
	printUse(t, i, "at rest", func() int {
		select {
		case <-time.After(rest): // what is measured is this very time
		case <-ctx.Done():
		}
		return 0
	})
	printUse(t, i, "100 in flight", func() int { return len(creates(t, i, ours, 100, 3000)) })
	printUse(t, i, "64 in flight, 1 MB each", func() int { return large(t, i, 64, 150) })
}

// printUse prints what the webhook's process used while creates ran, which returns how many there were.
func printUse(t *testing.T, i *install.Installation, what string, creates func() int) {
	t.Helper()
	cpu, start := cpuOf(t, i.Webhook.PID()), time.Now()
	n := creates()
	used, took := cpuOf(t, i.Webhook.PID())-cpu, time.Since(start)
	each := "-"
	if n > 0 {
		each = (used / time.Duration(n)).Round(10 * time.Microsecond).String()
	}
	fmt.Printf("%-34s %10.1f %12.3f %14s %9d MiB\n", what, float64(n)/took.Seconds(),
		used.Seconds()/took.Seconds(), each, peakOf(t, i.Webhook.PID())>>20)
}

// large asks what n pods with 1 MB of variables would come out as, with so many in flight. On a busy machine the API server
// lets some pass as they are.
func large(t *testing.T, i *install.Installation, flight, n int) int {
	t.Helper()
	p := pod()
	for k := range 32 {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env,
			corev1.EnvVar{Name: fmt.Sprintf("FILL_%d", k), Value: strings.Repeat("x", 32<<10)})
	}
	work := make(chan struct{})
	var workers sync.WaitGroup
	var sliced atomic.Int64
	for range flight {
		workers.Go(func() {
			for range work {
				made, err := i.Server.Client.CoreV1().Pods(ours).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err == nil && made.Annotations[api.AnnotationPlanned] != "" {
					sliced.Add(1)
				}
			}
		})
	}
	for range n {
		work <- struct{}{}
	}
	close(work)
	workers.Wait()
	if sliced.Load() == 0 {
		t.Error("no large pod was sliced")
	}
	return n
}

// cpuOf is the processor time of a process so far.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	used, err := cluster.CPUOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// peakOf is the most resident memory that a process has had, in bytes.
func peakOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kib int
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

package nodetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/snapshot"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/source"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// command runs a command of gpuslice.
func command(t *testing.T, of func(cli.Streams) *cobra.Command, args ...string) (out []byte) {
	t.Helper()
	var printed, errs bytes.Buffer
	cmd := of(cli.Streams{In: strings.NewReader(""), Out: &printed, Err: &errs, Getenv: os.Getenv, Now: time.Now})
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, errs.String())
	}
	return printed.Bytes()
}

// TestPlan divides the node's two GPUs as gpuslice plan proposes, with the file that it writes for NVIDIA's device plugin.
func TestPlan(t *testing.T) {
	t.Run("as many pods run as predicted", func(t *testing.T) {
		n, dir := node(t), t.TempDir()
		devices := []string{fakegpu.ConfigVariable + "=" + fakegpu.Config{Devices: 2}.String()}
		whole := cluster.NVIDIA{Config: "version: v1\n", Env: devices}
		p, err := n.StartNVIDIAPlugin(whole)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.AwaitAllocatable(t.Context(), "nvidia.com/gpu", 2); err != nil {
			t.Fatal(err)
		}
		if _, err := n.DiscoverFeatures(t.Context(), whole); err != nil {
			t.Fatal(err)
		}

		file := filepath.Join(dir, "fleet.json.gz")
		command(t, snapshot.New, "--kubeconfig", n.Kubeconfig, "--usage=false", "-o", file)
		const pods, replicas = 10, 4
		demand(t, file, pods)
		var d struct {
			Waiting struct{ Before, After int }
			Nodes   []struct{ Replicas int }
		}
		if err := json.Unmarshal(command(t, plan.New, "--from", file, "--changes", dir, "-o", "json"), &d); err != nil {
			t.Fatal(err)
		}
		if d.Waiting.Before != pods-2 || d.Waiting.After != pods-2*replicas || len(d.Nodes) != 1 || d.Nodes[0].Replicas != replicas {
			t.Fatalf("the plan is %+v", d)
		}
		var configs corev1.ConfigMap
		text, err := os.ReadFile(filepath.Join(dir, "device-plugin-configs.yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, &configs)
		}
		if err != nil {
			t.Fatal(err)
		}

		p.Stop()
		if p, err = n.StartNVIDIAPlugin(cluster.NVIDIA{Config: configs.Data["time-slicing-4"], Env: devices}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		const shared = "nvidia.com/gpu.shared"
		if err := n.AwaitAllocatable(t.Context(), shared, 2*replicas); err != nil {
			t.Fatal(err)
		}
		for i := range pods {
			create(t, n, podName(i),
				corev1.PodSpec{Containers: []corev1.Container{asking(container("main", "echo $NVIDIA_VISIBLE_DEVICES; sleep 600"), shared)}})
		}
		await(t, "pods that run or cannot be scheduled", func() bool {
			running, waiting := 0, 0
			for i := range pods {
				status := get(t, n, podName(i)).Status
				if status.Phase == corev1.PodRunning {
					running++
				}
				if slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
					waiting++
				}
			}
			return running == pods-d.Waiting.After && waiting == d.Waiting.After
		})
		held := map[string]int{}
		for i := range pods {
			if get(t, n, podName(i)).Status.Phase == corev1.PodRunning {
				awaitLog(t, n, podName(i), "main", "GPU-")
				device, err := n.Kubectl(t.Context(), "logs", podName(i))
				if err != nil {
					t.Fatal(err)
				}
				held[strings.TrimSpace(device)]++
			}
		}
		if counts := slices.Collect(maps.Values(held)); !slices.Equal(counts, []int{replicas, replicas}) {
			t.Errorf("%v pods have each GPU, want %d", held, replicas)
		}
	})
}

func podName(i int) string { return fmt.Sprint("planned-", i) }

// demand adds pods that wait to a snapshot. A GPU has the memory of four.
func demand(t *testing.T, file string, pods int) {
	t.Helper()
	f, err := source.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	memory := f.Nodes[0].GPUs.Memory
	for i := range pods {
		f.Pods = append(f.Pods,
			inventory.Pod{Namespace: "default", Name: podName(i), Phase: corev1.PodPending, Requests: inventory.Resources{"nvidia.com/gpu": 1},
				Slices: []inventory.Slice{{Container: "main", Resource: "nvidia.com/gpu", Count: 1,
					Memory: memory / 10 * 9 / 4, Strategy: "time-slicing"}}})
	}
	f.Sort()
	var b bytes.Buffer
	if err := inventory.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

// ofParts is a card of 24 GiB in 23 parts, which are of 1036 MiB: 8, 12 and 3 GiB fill it.
func ofParts(devices int) install.Sharing {
	return install.Sharing{GPU: fakegpu.Config{Devices: devices, Fault: fakegpu.Fault{Memory: 24 << 30}}, Replicas: 23, Several: true}
}

// granularPool declares it.
const granularPool = `
apiVersion: gpuslice.dev/v1
strategies: [time-slicing]
guard: {mode: sidecar, act: always, grace: 1s, termGrace: 2s}
pools:
  declared:
  - {name: parts, selector: {kubernetes.io/os: linux}, resource: nvidia.com/gpu.shared, strategy: time-slicing, deviceMemory: 24Gi, replicas: 23, granular: true, driver: 580.95.05}
`

// share has the node's plugin and feature discovery share other GPUs.
func (s *stage) share(ctx context.Context, how install.Sharing) {
	s.Helper()
	if err := s.node.Share(ctx, how); err != nil {
		s.Fatal(err)
	}
}

// defaultPolicy writes the cluster's default policy.
func (s *stage) defaultPolicy(ctx context.Context, document []byte) {
	s.Helper()
	if err := s.node.Policy(ctx, "default", document); err != nil {
		s.Fatal(err)
	}
	if err := s.node.Settle(ctx, install.SharedResource); err != nil {
		s.Fatal(err)
	}
}

// Not parallel: the node has one device in parts for as long as it runs.
func TestGranular(t *testing.T) {
	s := newStage(t, "", ofParts(1).GPU)
	before, err := os.ReadFile("testdata/policies/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.share(t.Context(), ofParts(1))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if err := s.node.Offer(ctx, devices); err != nil {
			t.Error(err)
		}
		s.defaultPolicy(ctx, before)
	})
	s.defaultPolicy(t.Context(), []byte(granularPool))

	t.Run("memory is packed by the stock scheduler", func(t *testing.T) {
		for _, gib := range []int{8, 12, 3} {
			s.create(slice(fmt.Sprintf("%dGi", gib), fmt.Sprint("slice-", gib), sliced("trainer", "hold 2GiB")))
		}
		for _, gib := range []int{8, 12, 3} {
			p := s.awaitRunning(fmt.Sprint("slice-", gib))
			for _, name := range []string{limits.CheckContainer, "trainer"} {
				if got := units(p, name); got != int64(gib) {
					t.Errorf("container %s of %s requests %d parts, want %d", name, p.Name, got, gib)
				}
			}
		}
		s.create(slice("2Gi", "slice-2", sliced("trainer", "hold 1GiB")))
		s.awaitPod("slice-2", "message that says what is missing", unschedulable)
		s.remove("slice-3")
		s.awaitRunning("slice-2")
	})
	t.Run("check and container were given the same parts of one device", func(t *testing.T) {
		held := given(t, s.get("slice-12"))
		if got := held["trainer"]; len(got) != 12 || fmt.Sprint(held[limits.CheckContainer]) != fmt.Sprint(got) {
			t.Errorf("trainer was given %v, and the check %v; want the same 12", got, held[limits.CheckContainer])
		}
		for _, part := range held["trainer"] {
			if device, _, _ := strings.Cut(part, "::"); !strings.HasPrefix(held["trainer"][0], device+"::") {
				t.Errorf("trainer was given parts of two devices: %v", held["trainer"])
			}
		}
	})
	t.Run("parts by hand are denied", func(t *testing.T) {
		p := plain("by-hand", tenant("trainer"))
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{install.SharedResource: resource.MustParse("1")}
		_, err := s.node.Client.CoreV1().Pods(s.namespace).Create(t.Context(), p, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "parts of a GPU without a slice") {
			t.Errorf("the pod was answered with %v", err)
		}
	})
	t.Run("a slice on two devices is stopped by its check", func(t *testing.T) {
		// The pod is planned for one GPU, and the node turns out to have two, of which its labels do not tell.
		p := once(slice("8Gi", "spread", sliced("trainer", "hold 1GiB")))
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/hold"}}
		s.create(p)
		for _, name := range []string{"slice-8", "slice-12", "slice-2"} {
			s.remove(name)
		}
		two := ofParts(2)
		two.Silent = true
		s.gpu(two.GPU)
		s.share(t.Context(), two)
		if _, err := s.node.Kubectl(t.Context(), "patch", "pod", "spread", "--namespace="+s.namespace,
			"--patch={\"spec\":{\"schedulingGates\":null}}"); err != nil {
			t.Fatal(err)
		}
		end := s.awaitEnd("spread", limits.CheckContainer)
		if !strings.Contains(end.Message, "2 devices were assigned, and the slice is to be of one") {
			t.Errorf("the check ended as %+v", end)
		}
	})
}

// remove deletes a pod and waits until it is gone.
func (s *stage) remove(name string) {
	s.Helper()
	if _, err := s.node.Kubectl(s.Context(), "delete", "pod", name, "--namespace="+s.namespace, "--grace-period=1"); err != nil {
		s.Fatal(err)
	}
}

// units is how many replicas a container requests.
func units(p *corev1.Pod, container string) int64 {
	q := containerOf(p, container).Resources.Limits[install.SharedResource]
	return q.Value()
}

// unschedulable reports whether the scheduler found too few replicas.
func unschedulable(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && strings.Contains(c.Message, "Insufficient "+install.SharedResource) {
			return true
		}
	}
	return false
}

// given are the replicas of the node that the kubelet gave to each container of a pod, in order.
func given(t *testing.T, p *corev1.Pod) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	var checkpoint struct {
		Data struct {
			PodDeviceEntries []struct {
				PodUID, ContainerName, ResourceName string
				DeviceIDs                           map[string][]string // by NUMA node
			}
		}
	}
	if err := json.Unmarshal(text, &checkpoint); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, e := range checkpoint.Data.PodDeviceEntries {
		if e.PodUID == string(p.UID) && e.ResourceName == install.SharedResource {
			for _, identities := range e.DeviceIDs {
				out[e.ContainerName] = append(out[e.ContainerName], identities...)
			}
			slices.Sort(out[e.ContainerName])
		}
	}
	return out
}

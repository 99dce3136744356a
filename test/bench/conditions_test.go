package bench

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/largepods"
)

// requestBytes are the sizes of pods that are requested, createdBytes of those that are stored: managed fields take most of what etcd
// stores.
var (
	requestBytes = []int{10 << 10, 100 << 10, 500 << 10, 1300 << 10}
	createdBytes = []int{10 << 10, 100 << 10, 300 << 10}
)

// strictSpace is a namespace that is strict, where pods of more than 2,000 entries are denied: what the denial takes is printed.
const strictSpace = "strict"

// TestPrintConditions prints the CPU time that the API server takes for one pod without a GPU, by the list that makes it large: in a
// namespace that the configurations leave out, in one of ours without a policy, and in one that is strict. Creates are dry runs, which
// etcd does not bound; patches change a label of a stored pod.
func TestPrintConditions(t *testing.T) {
	cluster.Need(t)
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	i := installed(t, binary)
	b := conditionBench{t: t, i: i, spaces: []string{"gpu-operator", "plain", strictSpace}}
	if b.server, err = i.Server.PID("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range b.spaces {
		labels := map[string]string{}
		if namespace == strictSpace {
			labels["gpuslice.dev/enforce"] = "strict"
		}
		if err := i.Server.Namespace(t.Context(), namespace, labels); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("%-30s %-7s %9s %9s %10s %10s %7s %10s %10s\n", "entries", "", "KiB", "number",
		"left out", "ours", "times", "strict", "webhook")
	for _, s := range largepods.Shapes() {
		for _, bytes := range requestBytes {
			b.print(s, "create", bytes, b.create)
		}
		for _, bytes := range createdBytes {
			b.print(s, "patch", bytes, b.patch)
		}
	}
}

type conditionBench struct {
	t      *testing.T
	i      *install.Installation
	spaces []string // left out, ours, strict
	server int      // the API server's process
}

// print prints one line. Small pods are written more often, since CPU time is counted in ticks.
func (b conditionBench) print(s largepods.Shape, what string, bytes int,
	write func(namespace string, pod *corev1.Pod, times int) time.Duration) {
	b.t.Helper()
	pod, entries := s.Pod("p", bytes)
	times, repeated := max(1, 200_000/bytes), 2
	used := map[string]time.Duration{}
	webhook := cpuOf(b.t, b.i.Webhook.PID())
	for range repeated {
		for _, namespace := range b.spaces {
			used[namespace] += write(namespace, pod, times)
		}
	}
	webhook = cpuOf(b.t, b.i.Webhook.PID()) - webhook
	each := func(d time.Duration) time.Duration {
		return (d / time.Duration(repeated*times)).Round(100 * time.Microsecond)
	}
	without, ours := used[b.spaces[0]], used[b.spaces[1]]
	fmt.Printf("%-30s %-7s %9d %9d %10s %10s %6.2fx %10s %10s\n", s.Name, what, bytes>>10, entries,
		each(without), each(ours), ours.Seconds()/without.Seconds(),
		each(used[b.spaces[2]]), each(webhook/2))
}

func (b conditionBench) create(namespace string, pod *corev1.Pod, times int) time.Duration {
	b.t.Helper()
	begin := cpuOf(b.t, b.server)
	for range times {
		if _, err := b.i.Server.Client.CoreV1().Pods(namespace).Create(b.t.Context(), pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil && namespace != strictSpace {
			b.t.Logf("create in %s: %.200v", namespace, err)
		}
	}
	return cpuOf(b.t, b.server) - begin
}

func (b conditionBench) patch(namespace string, pod *corev1.Pod, times int) time.Duration {
	b.t.Helper()
	pods := b.i.Server.Client.CoreV1().Pods(namespace)
	if _, err := pods.Create(b.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		if namespace != strictSpace {
			b.t.Logf("create in %s: %.200v", namespace, err)
		}
		return 0
	}
	begin := cpuOf(b.t, b.server)
	for n := range times {
		if _, err := pods.Patch(b.t.Context(), pod.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{"patched":"%d"}}}`, n), metav1.PatchOptions{}); err != nil {
			b.t.Logf("patch in %s: %.200v", namespace, err)
		}
	}
	used := cpuOf(b.t, b.server) - begin
	if err := pods.Delete(b.t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		b.t.Fatal(err)
	}
	return used
}

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// Namespaces of the ways to create a pod. All but the last two are among those that our configuration leaves out.
const (
	without    = "gpu-operator"
	answering  = "nvidia-device-plugin"
	expressing = "kube-system"
	patching   = "kube-public"
	checking   = "kube-node-lease"
	byKyverno  = api.SystemNamespace
	ungoverned = "team-b" // ours, with no policy for it
	ours       = "team-a"
)

// way is what a create passes on its way to etcd in a namespace.
type way struct{ name, namespace string }

// ways are compared in one run. The fixed patch is what our own answer costs the server, whoever gives it; checked, a validating
// webhook that only answers follows it: no less is possible with two webhooks.
var ways = []way{
	{"none", without}, {"only answers", answering}, {"mutating policy", expressing}, {"Kyverno", byKyverno},
	{"a fixed patch", patching}, {"a fixed patch, checked", checking},
	{"gpuslice, no policy", ungoverned}, {"gpuslice", ours},
}

const rounds = 7

// TestPrintPodCreates prints the time that creating a pod takes through a real API server, and the CPU time that the API server
// and the process of gpuslice or Kyverno take for it, for each of the ways. They take turns, so that what else the machine does hits
// all alike.
func TestPrintPodCreates(t *testing.T) {
	cluster.Need(t)
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	i, err := install.New(t.Context(), serverWithKyverno(t), binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	setUp(t, i)
	startKyverno(t, i, byKyverno)
	creates(t, i, byKyverno, 10, 50)
	fmt.Printf("%-10s %-24s %10s %10s %10s %14s %14s\n", "in flight", "webhook", "p50", "p99", "ratio", "API server CPU", "own CPU")
	for _, flight := range flights {
		taken := map[string]*cost{}
		for range rounds {
			for _, w := range ways {
				measure(t, i, taken, w.name, w.namespace, flight)
			}
		}
		for _, w := range ways {
			c := taken[w.name]
			fmt.Printf("%-10d %-24s %10s %10s %9.2fx %14s %14s\n", flight, w.name, c.p50().Round(10*time.Microsecond),
				quantile(c.times, 99).Round(10*time.Microsecond),
				float64(c.p50())/float64(taken["only answers"].p50()), median(c.server), median(c.own))
		}
	}
}

// flights are how many creates are under way at a time.
var flights = []int{1, 10, 100}

// installed starts an API server and a webhook of this binary.
func installed(t *testing.T, binary string) *install.Installation {
	t.Helper()
	i, err := install.New(t.Context(), cluster.ForTest(t, cluster.Options{}), binary, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	return i
}

// cost is what creates took: the time of each, and in each round the CPU time of the processes for one.
type cost struct {
	times       []time.Duration
	server, own []time.Duration
}

func (c *cost) p50() time.Duration { return quantile(c.times, 50) }

// median is that of the rounds: a round that something else disturbs can take twice the CPU time.
func median(each []time.Duration) time.Duration {
	return quantile(each, 50).Round(10 * time.Microsecond)
}

// measure creates pods in a namespace and adds what they took to what the name has taken.
func measure(t *testing.T, i *install.Installation, taken map[string]*cost, name, namespace string, flight int) {
	t.Helper()
	pid, err := i.Server.PID("kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	if taken[name] == nil {
		taken[name] = &cost{}
	}
	its := i.Webhook.PID()
	if namespace == byKyverno {
		if its, err = i.Server.PID("kyverno"); err != nil {
			t.Fatal(err)
		}
	}
	atRest(t, pid, its)
	c, server, own := taken[name], cpuOf(t, pid), cpuOf(t, its)
	times, _ := loadOf(namespace, flight, 40*min(flight, 10)).create(t, i)
	n := time.Duration(len(times))
	c.server, c.own = append(c.server, (cpuOf(t, pid)-server)/n), append(c.own, (cpuOf(t, its)-own)/n)
	c.times = append(c.times, times...)
	remove(t, i, namespace)
}

// atRest returns once the processes take less than a tenth of a core: they still work on what was removed.
func atRest(t *testing.T, pids ...int) {
	t.Helper()
	const window, little = 200 * time.Millisecond, 20 * time.Millisecond
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		busy := false
		for _, pid := range pids {
			before := cpuOf(t, pid)
			time.Sleep(window)
			busy = busy || cpuOf(t, pid)-before >= little
		}
		if !busy {
			return
		}
	}
}

// loadOf is what is created in a namespace: where no policy governs pods, those that ask for whole GPUs.
func loadOf(namespace string, flight, n int) load {
	l := load{namespace: namespace, pod: pod, flight: flight, n: n}
	switch namespace {
	case ungoverned:
		l.pod = whole
	case ours, patching, checking, expressing, byKyverno:
		l.sliced = true
	}
	return l
}

func setUp(t *testing.T, i *install.Installation) {
	t.Helper()
	ctx := t.Context()
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed", "a100-mig-mixed", "h100-mps-plugin", "t4-plain-old-driver")
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{without, answering, ungoverned, ours} {
		if err := i.Server.Namespace(ctx, namespace, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{expressing, patching, checking} { // the server makes these itself
		if err := i.Server.DefaultAccount(ctx, namespace); err != nil {
			t.Fatal(err)
		}
	}
	policy := fmt.Sprintf("apiVersion: gpuslice.dev/v1\nnamespaces: {names: [%s]}\nstrategies: [time-slicing, mps, mig]\n", ours)
	if err := i.Policy(ctx, ours, []byte(policy)); err != nil {
		t.Fatal(err)
	}
	if err := i.Nodes(ctx, nodes...); err != nil {
		t.Fatal(err)
	}
	if err := i.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	register(t, i.Server, answering, func(*admissionv1.AdmissionRequest) []byte { return nil })
	register(t, i.Server, patching, fixedPatch(t))
	register(t, i.Server, checking, fixedPatch(t))
	registerCheck(t, i.Server, checking)
	registerExpression(t, i.Server, expressing)
	for _, w := range ways[1:] { // the first call of each opens its connections
		if w.namespace != byKyverno {
			creates(t, i, w.namespace, 10, 50)
		}
	}
}

// fixedPatch answers every pod with the patch that our own webhook would give the first one.
func fixedPatch(t *testing.T) func(*admissionv1.AdmissionRequest) []byte {
	return fixed(func(r *admissionv1.AdmissionRequest) []byte {
		raw, _, err := rawpod.Decode(r.Object.Raw)
		if err != nil {
			t.Error(err)
			return nil
		}
		in, err := typical()
		if err != nil {
			t.Error(err)
			return nil
		}
		_, ops := policies.Create(in, raw, promise.Keys{})
		patch, err := json.Marshal(ops)
		if err != nil {
			t.Error(err)
		}
		return patch
	})
}

// fixed answers every pod as the first one is answered.
func fixed(answer func(*admissionv1.AdmissionRequest) []byte) func(*admissionv1.AdmissionRequest) []byte {
	var once sync.Once
	var patch []byte
	token := regexp.MustCompile(`kube-api-access-[a-z0-9]+`) // the one name that differs from pod to pod
	return func(r *admissionv1.AdmissionRequest) []byte {
		once.Do(func() { patch = answer(r) })
		return token.ReplaceAll(patch, token.Find(r.Object.Raw))
	}
}

// creates creates n pods with so many in flight, removes them, and returns how long each took.
func creates(t *testing.T, i *install.Installation, namespace string, flight, n int) []time.Duration {
	t.Helper()
	times, _ := loadOf(namespace, flight, n).create(t, i)
	remove(t, i, namespace)
	return times
}

// remove removes the pods of a namespace.
func remove(t *testing.T, i *install.Installation, namespace string) {
	t.Helper()
	pods := i.Server.Client.CoreV1().Pods(namespace)
	if err := pods.DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
		metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}

// load is n pods that are created in a namespace, so many at a time.
type load struct {
	namespace string
	pod       func() *corev1.Pod
	sliced    bool // what has to come of them
	flight, n int
}

// create returns how long each create took, and the pods' names.
func (l load) create(t *testing.T, i *install.Installation) (times []time.Duration, names []string) {
	t.Helper()
	pods := i.Server.Client.CoreV1().Pods(l.namespace)
	times, names = make([]time.Duration, l.n), make([]string, l.n)
	work := make(chan int)
	var workers sync.WaitGroup
	for range l.flight {
		workers.Go(func() {
			for k := range work {
				start := time.Now()
				made, err := pods.Create(t.Context(), l.pod(), metav1.CreateOptions{})
				times[k] = time.Since(start)
				if err != nil {
					t.Error(err)
					continue
				}
				if _, sliced := made.Annotations[api.AnnotationPlanned]; sliced != l.sliced {
					t.Errorf("a pod in %s is sliced: %v", l.namespace, sliced)
				}
				names[k] = made.Name
			}
		})
	}
	for k := range l.n {
		work <- k
	}
	close(work)
	workers.Wait()
	return times, names
}

func pod() *corev1.Pod {
	quantities := corev1.ResourceList{api.ResourceGPU: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("4")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "train-", Labels: map[string]string{api.LabelMemory: "4Gi"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "trainer", Image: "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime",
			Resources: corev1.ResourceRequirements{Limits: quantities}}}},
	}
}

func quantile(times []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// TestPrintCommandLineStart prints how long the command line takes to print its version.
func TestPrintCommandLineStart(t *testing.T) {
	if !cluster.Wanted("apiserver") {
		t.Skip("prints a figure: set GPUSLICE_TEST=apiserver to run it (make bench)")
	}
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/gpuslice")
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Duration
	for range 50 {
		start := time.Now()
		if out, err := exec.CommandContext(t.Context(), binary, "--version").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		times = append(times, time.Since(start))
	}
	size, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(strings.TrimSpace(fmt.Sprintf("command line: start p50 %s, p99 %s, %.1f MB", quantile(times, 50).Round(10*time.Microsecond),
		quantile(times, 99).Round(10*time.Microsecond), float64(size.Size())/1e6)))
}

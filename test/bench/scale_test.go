package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/memoryapi"
	"github.com/gpuslice/gpuslice/test/scenarios"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// Sizes of the clusters. A pod's slice is a quarter of a GPU, so five GPUs of a node have them all.
const (
	podsOfNode     = 20 // on average: they are on nodes of the kind that they were planned for
	podsOfWorkload = 50
	teams          = 200
)

// TestPrintScale prints what replicas take of clusters of several sizes: how long one takes to know the cluster, the memory of
// the leader and of another replica, how long a decision takes, and what a wave takes in which the labels of all nodes change.
// The API server is generated: it serves nodes and pods from memory, as JSON. The replicas and what they are asked over TLS are real.
func TestPrintScale(t *testing.T) {
	if !cluster.Wanted("long") {
		t.Skip("takes minutes and gigabytes: set GPUSLICE_TEST=long to run it (make bench-scale)")
	}
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%8s %8s %10s %14s %14s %10s %12s %12s\n", "nodes", "pods", "ready", "leader",
		"replica", "decision", "wave, leader", "wave, replica")
	var all []taken
	for _, nodes := range sizes(t) {
		all = append(all, printScale(t, binary, nodes))
	}
	if name := os.Getenv("GPUSLICE_CURVES"); name != "" {
		if err := os.WriteFile(name, curves(sizes(t), growth(all)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// taken is what replicas took of a cluster.
type taken struct {
	ready, decision           time.Duration
	leader, replica           int     // the most resident memory, in bytes
	leaderCores, replicaCores float64 // during the wave
}

// growth are the curves of what was taken, with the aims.
func growth(all []taken) []panel {
	of := func(name string, value func(taken) float64) line {
		l := line{name: name}
		for _, t := range all {
			l.values = append(l.values, value(t))
		}
		return l
	}
	return []panel{
		{"memory in MiB, by nodes", 400, []line{
			of("leader", func(t taken) float64 { return float64(t.leader >> 20) }),
			of("another replica", func(t taken) float64 { return float64(t.replica >> 20) })}},
		{"ready after so many seconds", 10, []line{of("leader", func(t taken) float64 { return t.ready.Seconds() })}},
		{"a decision in ms", 1.5 * all[0].decision.Seconds() * 1e3,
			[]line{of("another replica", func(t taken) float64 { return t.decision.Seconds() * 1e3 })}},
		{"a wave of labels, % of a core", 10, []line{
			of("leader", func(t taken) float64 { return 100 * t.leaderCores }),
			of("another replica", func(t taken) float64 { return 100 * t.replicaCores })}},
	}
}

// sizes are how many nodes the clusters have.
func sizes(t *testing.T) []int {
	t.Helper()
	return counts(t, "GPUSLICE_NODES", 1, "1,500,2000,5000")
}

// counts are the ascending numbers in a variable of the environment, as "500,5000".
func counts(t *testing.T, variable string, least int, otherwise string) (out []int) {
	t.Helper()
	for _, text := range strings.Split(cmp.Or(os.Getenv(variable), otherwise), ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || len(out) > 0 && n <= out[len(out)-1] {
			t.Fatalf("%s has %q: write ascending numbers, as 500,5000", variable, text)
		}
		out = append(out, n)
	}
	return out
}

func printScale(t *testing.T, binary string, nodes int) taken {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	server, err := memoryapi.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	c := &generated{T: t, server: server}
	c.put(install.PolicyObject("default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, mps, mig]\n")))
	c.namespaces()
	c.nodes(nodes)
	c.pods(binary, nodes)

	start := time.Now()
	leader, err := install.InMemory(ctx, server, binary, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Stop()
	c.knows(leader, nodes)
	out := taken{ready: time.Since(start)}
	replica, err := install.ReplicaInMemory(ctx, server, binary, dir, "replica")
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Stop()
	c.knows(replica, nodes)
	rests(t, leader)
	rests(t, replica)
	out.decision = c.decide(replica, 300)
	out.leaderCores, out.replicaCores = c.wave(nodes, leader, replica)
	out.leader, out.replica = peakOf(t, leader.PID()), peakOf(t, replica.PID())
	fmt.Printf("%8d %8d %10s %10d MiB %10d MiB %10s %11.1f%% %12.1f%%\n", nodes, nodes*podsOfNode,
		out.ready.Round(10*time.Millisecond), out.leader>>20,
		out.replica>>20, out.decision.Round(10*time.Microsecond), 100*out.leaderCores, 100*out.replicaCores)
	return out
}

// generated is a cluster whose API server is generated.
type generated struct {
	*testing.T
	server *memoryapi.Server
	kinds  []*unstructured.Unstructured // one node of each kind
}

func (c *generated) put(object runtime.Object) {
	c.Helper()
	if err := c.server.Put(untyped(c.T, object)); err != nil {
		c.Fatal(err)
	}
}

func untyped(t *testing.T, object runtime.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// nodes puts nodes of four kinds on the server.
func (c *generated) nodes(n int) {
	c.Helper()
	all, err := scenarios.Nodes("l4-timeslicing-renamed", "a100-mig-mixed", "h100-mps-plugin", "t4-plain-old-driver")
	if err != nil {
		c.Fatal(err)
	}
	for _, node := range all {
		node.TypeMeta = kindOf("Node")
		c.kinds = append(c.kinds, untyped(c.T, node))
	}
	for k := range n {
		c.node(k, "0")
	}
}

// node puts a node on the server, or changes its label.
func (c *generated) node(k int, label string) {
	c.Helper()
	name := "node-" + strconv.Itoa(k)
	c.copyOf(c.kinds[k%len(c.kinds)], "", name, func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		labels[corev1.LabelHostname], labels["example.com/wave"] = name, label
		o.SetLabels(labels)
	})
}

// copyOf puts an object on the server that shares all but its metadata with another.
func (c *generated) copyOf(o *unstructured.Unstructured, namespace, name string, change func(*unstructured.Unstructured)) {
	c.Helper()
	next := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	next.Object["metadata"] = runtime.DeepCopyJSON(o.Object["metadata"].(map[string]any))
	next.SetNamespace(namespace)
	next.SetName(name)
	next.SetUID("")
	change(next)
	if err := c.server.PutShared(next); err != nil {
		c.Fatal(err)
	}
}

// pods puts running pods on the server, so many of each workload, with the slice that a webhook gave one of them.
func (c *generated) pods(binary string, nodes int) {
	c.Helper()
	webhook, err := install.InMemory(c.Context(), c.server, binary, c.TempDir())
	if err != nil {
		c.Fatal(err)
	}
	defer webhook.Stop()
	c.knows(webhook, nodes)
	asker := c.asker(webhook)
	kinds := min(len(c.kinds), nodes)
	for first := 0; first < nodes*podsOfNode; first += podsOfWorkload {
		pod := c.given(asker, first/podsOfWorkload)
		kind, seen := c.placed(pod, kinds)
		fields := untyped(c.T, pod)
		for k := first; k < min(first+podsOfWorkload, nodes*podsOfNode); k++ {
			node := "node-" + strconv.Itoa(k/(podsOfNode*kinds)*kinds+kind)
			c.copyOf(fields, pod.Namespace, "train-"+strconv.Itoa(k), func(o *unstructured.Unstructured) {
				spec := maps.Clone(o.Object["spec"].(map[string]any))
				spec["nodeName"], o.Object["spec"] = node, spec
				seen.Node = node
				o.SetAnnotations(with(o.GetAnnotations(), api.AnnotationObserved, seen.Encode()))
			})
		}
	}
}

// given is a pod of a workload as a webhook gives it a slice and a kubelet runs it.
func (c *generated) given(asker *install.Asker, workload int) *corev1.Pod {
	c.Helper()
	asked := c.asked()
	asked.SetNamespace(team(workload % teams))
	asked.Object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["name"] = "trainer-" + strconv.Itoa(workload)
	answer, err := asker.Create(c.Context(), asked)
	if err != nil || answer.Pod == nil {
		c.Fatalf("a pod got no slice: %v, %v", answer.Denied, err)
	}
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Pod.Object, pod); err != nil {
		c.Fatal(err)
	}
	pod.Status = runs(pod)
	return pod
}

// placed is the first kind of node on which the leader finds the pod's slice enforced, and what it finds there.
func (c *generated) placed(pod *corev1.Pod, kinds int) (kind int, seen observe.Observation) {
	c.Helper()
	given, err := promise.Decode(pod.Annotations[api.AnnotationPromise])
	if err != nil {
		c.Fatal(err)
	}
	pod.Spec.NodeName = "any"
	for kind := range kinds {
		node := &corev1.Node{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.kinds[kind].Object, node); err != nil {
			c.Fatal(err)
		}
		if seen = observe.Observe(pod, observe.Place{Node: node}, given, nil); seen.State == observe.Enforced {
			return kind, seen
		}
	}
	c.Fatalf("no node enforces what a pod was given: %+v", seen)
	return 0, seen
}

// runs is the status of a pod all of whose containers run.
func runs(pod *corev1.Pod) (s corev1.PodStatus) {
	at := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	s.Phase, s.StartTime = corev1.PodRunning, &at
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	for _, c := range pod.Spec.InitContainers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, Started: new(true)}
		if status.State.Running = (&corev1.ContainerStateRunning{StartedAt: at}); c.RestartPolicy == nil {
			status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at, FinishedAt: at, Reason: "Completed"}}
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, status)
	}
	for _, c := range pod.Spec.Containers {
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
		s.ContainerStatuses = append(s.ContainerStatuses,
			corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, Started: new(true), State: state})
	}
	return s
}

// asked is the pod that replicas are asked about.
func (c *generated) asked() *unstructured.Unstructured {
	p := pod()
	p.TypeMeta, p.Namespace, p.Name = kindOf("Pod"), team(0), "train"
	return untyped(c.T, p)
}

// knows waits until a replica knows every node.
func (c *generated) knows(p *install.Process, nodes int) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 5*time.Minute)
	defer cancel()
	err := p.WaitState(ctx, "see the policy and nodes", func(s install.State) bool { return len(s.Policies) == 1 && s.Nodes == nodes })
	if err != nil {
		c.Fatalf("%.500s", err)
	}
}

// decide is the median of n creates, both webhooks together.
func (c *generated) decide(p *install.Process, n int) time.Duration {
	c.Helper()
	asker := c.asker(p)
	var times []time.Duration
	for range n {
		start := time.Now()
		answer, err := asker.Create(c.Context(), c.asked())
		if err != nil || answer.Pod == nil {
			c.Fatalf("a pod got no slice: %v, %v", answer.Denied, err)
		}
		times = append(times, time.Since(start))
	}
	return quantile(times, 50)
}

// rests waits until a process has done with what there was at its start: until it takes less than a twentieth of a core.
func rests(t *testing.T, p *install.Process) {
	t.Helper()
	const window = 2 * time.Second
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		before := cpuOf(t, p.PID())
		time.Sleep(window) // what is measured is this very time
		if cpuOf(t, p.PID())-before < window/20 {
			return
		}
	}
	t.Fatal("a replica never rests")
}

// wave changes a label of every node within a minute, and returns the cores that the processes took meanwhile.
func (c *generated) wave(nodes int, leader, replica *install.Process) (ofLeader, ofReplica float64) {
	c.Helper()
	const minute = time.Minute
	begin := time.Now()
	leaderCPU, replicaCPU := cpuOf(c.T, leader.PID()), cpuOf(c.T, replica.PID())
	tick := time.NewTicker(minute / time.Duration(nodes+1))
	defer tick.Stop()
	for k := range nodes {
		<-tick.C
		c.node(k, "1")
	}
	for time.Since(begin) < minute {
		<-tick.C
	}
	cores := func(p *install.Process, before time.Duration) float64 {
		return (cpuOf(c.T, p.PID()) - before).Seconds() / time.Since(begin).Seconds()
	}
	return cores(leader, leaderCPU), cores(replica, replicaCPU)
}

// with is a copy of the entries with one more.
func with(entries map[string]string, name, value string) map[string]string {
	out := maps.Clone(entries)
	out[name] = value
	return out
}

func team(k int) string { return "team-" + strconv.Itoa(k) }

func kindOf(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func named(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

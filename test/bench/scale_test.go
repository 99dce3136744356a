package bench

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/memoryapi"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// Sizes of the clusters. A pod's slice is a quarter of a GPU, so five GPUs of a node have them all.
const (
	podsOfNode = 20
	teams      = 200
)

// TestPrintScale prints what replicas take of clusters of several sizes: how long one takes to know the cluster, the memory of
// the leader and of another replica, how long a decision takes, and what a wave takes in which the labels of all nodes change.
// The API server is generated: it serves nodes and pods from memory, as JSON. The replicas and what they are asked over TLS are real.
func TestPrintScale(t *testing.T) {
	if !cluster.Wanted("long") {
		t.Skip("takes minutes and gigabytes: set GPUSLICE_TEST=long to run it (make bench-scale)")
	}
	t.Setenv("GOMEMLIMIT", "400MiB") // as in deploy/40-deployment.yaml
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%8s %8s %10s %14s %14s %10s %12s %12s\n", "nodes", "pods", "ready", "leader", "replica", "decision", "wave, leader", "wave, replica")
	for _, nodes := range []int{1, 500, 5000} {
		printScale(t, binary, nodes)
	}
}

func printScale(t *testing.T, binary string, nodes int) {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	server, err := memoryapi.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	c := &generated{T: t, server: server}
	c.put(install.PolicyObject("default", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, mps, mig]\n")))
	for k := range teams {
		name := team(k)
		c.put(&corev1.Namespace{TypeMeta: kindOf("Namespace"), ObjectMeta: named("", name, map[string]string{corev1.LabelMetadataName: name})})
	}
	c.nodes(nodes)
	c.pods(binary, nodes*podsOfNode)

	start := time.Now()
	leader, err := install.InMemory(ctx, server, binary, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer leader.Stop()
	c.knows(leader, nodes)
	ready := time.Since(start)
	replica, err := install.ReplicaInMemory(ctx, server, binary, dir, "replica")
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Stop()
	c.knows(replica, nodes)
	rests(t, leader)
	rests(t, replica)
	decision := c.decide(replica, 300)
	leaderCPU, replicaCPU := c.wave(nodes, leader, replica)
	fmt.Printf("%8d %8d %10s %10d MiB %10d MiB %10s %11.1f%% %12.1f%%\n", nodes, nodes*podsOfNode, ready.Round(10*time.Millisecond), peakOf(t, leader.PID())>>20,
		peakOf(t, replica.PID())>>20, decision.Round(10*time.Microsecond), 100*leaderCPU, 100*replicaCPU)
}

// generated is a cluster whose API server is generated.
type generated struct {
	*testing.T
	server *memoryapi.Server
	kinds  []*unstructured.Unstructured // one node of each kind
}

func (c *generated) put(object runtime.Object) {
	c.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err == nil {
		err = c.server.Put(&unstructured.Unstructured{Object: fields})
	}
	if err != nil {
		c.Fatal(err)
	}
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
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(node)
		if err != nil {
			c.Fatal(err)
		}
		c.kinds = append(c.kinds, &unstructured.Unstructured{Object: fields})
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

// pods puts running pods on the server, each with the slice that a webhook gave one of them.
func (c *generated) pods(binary string, n int) {
	c.Helper()
	webhook, err := install.InMemory(c.Context(), c.server, binary, c.TempDir())
	if err != nil {
		c.Fatal(err)
	}
	defer webhook.Stop()
	asker, err := install.NewAsker(c.Context(), c.server.Config, webhook)
	if err != nil {
		c.Fatal(err)
	}
	answer, err := asker.Create(c.Context(), c.asked())
	if err != nil || answer.Pod == nil {
		c.Fatalf("a pod got no slice: %v, %v", answer.Denied, err)
	}
	pod := answer.Pod
	spec := runtime.DeepCopyJSON(pod.Object["spec"].(map[string]any))
	pod.Object["spec"], pod.Object["status"] = spec, map[string]any{"phase": "Running"}
	for k := range n {
		c.copyOf(pod, team(k%teams), "train-"+strconv.Itoa(k), func(o *unstructured.Unstructured) {
			onNode := maps.Clone(spec)
			onNode["nodeName"] = "node-" + strconv.Itoa(k/podsOfNode)
			o.Object["spec"] = onNode
		})
	}
}

// asked is the pod that replicas are asked about.
func (c *generated) asked() *unstructured.Unstructured {
	p := pod()
	p.TypeMeta, p.Namespace, p.Name = kindOf("Pod"), team(0), "train"
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		c.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
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
	asker, err := install.NewAsker(c.Context(), c.server.Config, p)
	if err != nil {
		c.Fatal(err)
	}
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

func team(k int) string { return "team-" + strconv.Itoa(k) }

func kindOf(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }

func named(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

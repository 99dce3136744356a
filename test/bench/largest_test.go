package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/boundedtest"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/memoryapi"
)

// hog is the namespace of the tenant.
const hog = "hog"

// TestPrintLargest prints the most memory of replicas while a tenant has the largest objects of each kind that they watch: of a leader
// and another replica that see them come, of a replica that starts among them, and of that one as the leader. Meanwhile slices are
// decided in another namespace. The API server is generated, as in TestPrintScale; once it has no watches of lists, as before Kubernetes
// 1.34.
func TestPrintLargest(t *testing.T) {
	if !cluster.Wanted("long") {
		t.Skip("takes minutes and gigabytes: set GPUSLICE_TEST=long to run it (make bench-scale)")
	}
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	n := counts(t, "GPUSLICE_LARGEST", 1, "50")[0]
	fmt.Printf("%-22s %10s %10s %18s %18s\n", "API server", "leader", "replica", "starts among them", "leads among them")
	for _, old := range []bool{false, true} {
		printLargest(t, binary, old, n)
	}
}

func printLargest(t *testing.T, binary string, old bool, n int) {
	t.Helper()
	const nodes = 4
	ctx, dir := t.Context(), t.TempDir()
	server, err := memoryapi.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if old {
		server.WithoutWatchLists()
	}
	c := &generated{T: t, server: server}
	c.put(install.PolicyObject("default",
		[]byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, mps, mig, claim]\nquota: {memory: 800Gi}\n")))
	c.namespaces()
	c.put(&corev1.Namespace{TypeMeta: kindOf("Namespace"), ObjectMeta: named("", hog, nil)})
	c.nodes(nodes)
	// so that the API is served
	c.put(&resourcev1.DeviceClass{TypeMeta: resourceKind("DeviceClass"), ObjectMeta: named("", "gpu.nvidia.com", nil)})

	start := func(with func(context.Context, *memoryapi.Server, string, string) (*install.Process, error)) *install.Process {
		t.Helper()
		p, err := with(ctx, server, binary, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Stop() })
		c.knows(p, nodes)
		return p
	}
	another := func(name string) func(context.Context, *memoryapi.Server, string, string) (*install.Process, error) {
		return func(ctx context.Context, s *memoryapi.Server, binary, dir string) (*install.Process, error) {
			return install.ReplicaInMemory(ctx, s, binary, dir, name)
		}
	}
	leader := start(install.InMemory)
	replica := start(another("replica"))
	rests(t, leader)
	c.decideIn(replica, team(0))
	c.largest(n)
	c.decideIn(replica, hog)
	rests(t, leader)
	rests(t, replica)
	c.decideIn(replica, team(0))
	ofLeader, ofReplica := peakOf(t, leader.PID()), peakOf(t, replica.PID())
	late := start(another("late"))
	rests(t, late)
	c.decideIn(late, hog)
	c.decideIn(late, team(0))
	ofLate := peakOf(t, late.PID())
	replica.Stop()
	leader.Stop()
	await(t, func() bool { return strings.Contains(logOf(t, late), `"leading"`) })
	rests(t, late)
	c.decideIn(late, team(0))
	name := "watches of lists"
	if old {
		name = "none of them"
	}
	fmt.Printf("%-22s %6d MiB %6d MiB %14d MiB %14d MiB\n", name, ofLeader>>20, ofReplica>>20, ofLate>>20, peakOf(t, late.PID())>>20)
}

func resourceKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: kind}
}

// copies puts n objects on the server that share all but their names.
func (c *generated) copies(n int, namespace, name string, object runtime.Object) {
	c.Helper()
	o := untyped(c.T, object)
	for i := range n {
		c.copyOf(o, namespace, name+"-"+strconv.Itoa(i), func(*unstructured.Unstructured) {})
	}
}

// largest has a tenant write much of each kind: n objects as large as the API server takes, and forty times as many of which all is kept.
func (c *generated) largest(n int) {
	c.Helper()
	largeOnes, keptOnes := n, 40*n
	const mega = 1300 << 10
	text := func(size int) string { return strings.Repeat("x", size) }
	amounts := func(n int) corev1.ResourceList {
		out := corev1.ResourceList{}
		for _, name := range boundedtest.Texts(n, 50) {
			out[corev1.ResourceName("requests.example.com/"+name)] = resource.MustParse("1")
		}
		return out
	}
	claim := func(selectors, size int) resourcev1.ResourceClaimSpec {
		e := resourcev1.ExactDeviceRequest{DeviceClassName: "nic.example.com",
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
		for range selectors {
			e.Selectors = append(e.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: text(size)}})
		}
		return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &e}}}}
	}
	for _, of := range []struct{ n, selectors, size int }{{2 * largeOnes, 128, 10 << 10}, {keptOnes, 3, 600}} {
		spec := claim(of.selectors, of.size)
		c.copies(of.n, hog, fmt.Sprint("t", of.size), &resourcev1.ResourceClaimTemplate{TypeMeta: resourceKind("ResourceClaimTemplate"),
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}})
		c.copies(of.n, hog, fmt.Sprint("c", of.size), &resourcev1.ResourceClaim{TypeMeta: resourceKind("ResourceClaim"), Spec: spec})
	}
	for i := range largeOnes { // of each namespace one document
		namespace := fmt.Sprint(hog, "-", i)
		labels := map[string]string{}
		for _, key := range boundedtest.Texts(max(mega/130*(i%2), 110), 63) {
			labels[key] = text(63)
		}
		c.put(&corev1.Namespace{TypeMeta: kindOf("Namespace"), ObjectMeta: named("", namespace, labels)})
		c.put(&corev1.ConfigMap{TypeMeta: kindOf("ConfigMap"), ObjectMeta: named(namespace, api.TenantPolicyName, nil),
			Data: map[string]string{api.PolicyKey: "#" + text(1000<<10)}})
	}
	c.copies(largeOnes, hog, "l",
		&corev1.LimitRange{TypeMeta: kindOf("LimitRange"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Max: amounts(7000), Min: amounts(30), Default: amounts(30), DefaultRequest: amounts(7000)}}}})
	c.copies(largeOnes, hog, "q", &corev1.ResourceQuota{TypeMeta: kindOf("ResourceQuota"), Spec: corev1.ResourceQuotaSpec{Hard: amounts(7000)},
		Status: corev1.ResourceQuotaStatus{Hard: amounts(7000)}})

	event := func(message string) *corev1.Event {
		return &corev1.Event{TypeMeta: kindOf("Event"), Reason: "Unhealthy", Message: message, Type: corev1.EventTypeWarning,
			Source:         corev1.EventSource{Component: "kubelet"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: hog, Name: "p", FieldPath: "spec.initContainers{gpuslice-guard}"}}
	}
	agents := event(text(mega))
	agents.Source.Component = "gpuslice"
	c.copies(largeOnes, hog, "e", event(text(mega)))
	c.copies(largeOnes, hog, "a", agents)
	c.copies(keptOnes, hog, "k", event(text(10<<10)))

	container := corev1.Container{Name: "c", Image: "i",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/device": resource.MustParse("1")}}}
	many := container
	for i := range 20_000 {
		many.Env = append(many.Env, corev1.EnvVar{Name: "V" + strconv.Itoa(i), Value: text(40)})
	}
	for i, pod := range []*corev1.Pod{
		{Spec: corev1.PodSpec{Containers: []corev1.Container{many}}},
		{Spec: corev1.PodSpec{Containers: []corev1.Container{container, {Name: "d", Image: text(mega)}}}},
	} {
		pod.TypeMeta, pod.Labels, pod.Status.Phase = kindOf("Pod"), map[string]string{api.LabelTier: "x"}, corev1.PodPending
		c.copies(largeOnes, hog, fmt.Sprint("p", i), pod)
	}
	forged := &corev1.Pod{TypeMeta: kindOf("Pod"), Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
	o := untyped(c.T, forged)
	for i := range keptOnes / 8 {
		c.copyOf(o, team(1), "forged-"+strconv.Itoa(i), func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{api.AnnotationPromise: strconv.Itoa(i) + text(60<<10), api.AnnotationPlanned: text(60 << 10),
				api.AnnotationSummary: text(60 << 10), api.AnnotationObserved: strconv.Itoa(i) + text(60<<10)})
		})
	}
	node := &corev1.Node{TypeMeta: kindOf("Node"), Status: corev1.NodeStatus{Allocatable: amounts(7000), Capacity: amounts(7000)}}
	c.copies(largeOnes/8+1, "", "large", node)
	slice := &resourcev1.ResourceSlice{TypeMeta: resourceKind("ResourceSlice"), Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example.com",
		AllNodes: new(true), Pool: resourcev1.ResourcePool{Name: "p", ResourceSliceCount: 1}}}
	for k := range 128 {
		d := resourcev1.Device{Name: fmt.Sprint("gpu-", k), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		for _, name := range boundedtest.Texts(32, 60) {
			d.Attributes[resourcev1.QualifiedName(name)] = resourcev1.DeviceAttribute{StringValue: new(text(64))}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, d)
	}
	c.copies(largeOnes/8+1, "", "large", slice)
}

// decideIn asks for a pod of the namespace, whose quota has its pods listed. Where a tenant has more than can be read, its own are denied.
func (c *generated) decideIn(p *install.Process, namespace string) {
	c.Helper()
	pod := c.asked()
	pod.SetNamespace(namespace)
	deadline, denial := time.Now().Add(time.Minute), ""
	for asker := c.asker(p); time.Now().Before(deadline); {
		answer, err := asker.Create(c.Context(), pod)
		if err == nil && answer.Pod != nil {
			return
		}
		if answer.Denied != nil {
			denial = answer.Denied.Message
		}
	}
	if namespace != hog || denial == "" {
		c.Errorf("no pod of namespace %s gets a slice: %s", namespace, denial)
	}
}

// await waits until it is so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !so(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it never is so")
		}
	}
}

func logOf(t *testing.T, p *install.Process) string {
	t.Helper()
	text, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

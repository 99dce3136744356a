package karpenter

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/markdown"
)

const (
	page   = "deploy/recipes/karpenter.md"
	team   = "research"
	plain  = "unmanaged" // its pods want no slice, and are what they request
	shared = "nvidia.com/gpu.shared"
	whole  = "nvidia.com/gpu"
	mig    = "nvidia.com/mig-1g.10gb"
)

// TestKarpenter follows the page with Karpenter itself, whose nodes are objects alone: the test stands for their kubelets and device
// plugins, and Kubernetes' own scheduler binds the pods.
func TestKarpenter(t *testing.T) {
	k := start(t)
	k.awaitUnfit(team, k.block("kind: Pod\n"))
	if claims := k.claims(); len(claims) > 0 {
		t.Fatalf("without an overlay %d nodes start", len(claims))
	}

	k.apply(k.block("kind: NodeOverlay"))
	k.create(team, k.block("kind: Pod\n"), 5)
	k.awaitNodes("with the overlay, 6 slices in 4 of a GPU", team, 6, 2)
	k.deletePods(team)
	k.awaitNodes("back to none", team, 0, 0)
	k.create(team, k.block("kind: Pod\n"), 1)
	k.awaitNodes("again from none", team, 1, 1)
	k.deletePods(team)
	k.awaitNodes("and back", team, 0, 0)

	const migPod = `{apiVersion: v1, kind: Pod, metadata: {name: mig}, spec: {containers: [{name: a, image: a, resources: {limits: {` + mig + `: 1}}}]}}`
	k.awaitUnfit(plain, migPod)
	k.apply(strings.NewReplacer("l4-shared", "a100-mig", "[g6.xlarge, g6.2xlarge]", "[p4d.24xlarge]", shared+`: "4"`, mig+`: "7"`).Replace(k.block("kind: NodeOverlay")))
	k.create(plain, migPod, 7)
	k.awaitNodes("8 MIG instances in 7 of a node", plain, 8, 2)
	k.deletePods(plain)
	k.awaitNodes("back from MIG", plain, 0, 0)
}

// karpenter is Karpenter with gpuslice.
type karpenter struct {
	*testing.T
	*install.Installation
	blocks []markdown.Block
	made   int
	claim  dynamic.ResourceInterface
}

// instanceTypes are what the provider sells.
const instanceTypes = `[
{"name": "g6.xlarge", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "1"}, "offerings": [` + offering + `]},
{"name": "p4d.24xlarge", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "96", "memory": "1152Gi", "pods": "110", "nvidia.com/gpu": "8"}, "offerings": [` + offering + `]}
]`

const offering = `{"Price": 1, "Available": true, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}`

func start(t *testing.T) *karpenter {
	t.Helper()
	cluster.Need(t)
	if !cluster.Wanted("matrix") {
		t.Skip("compiles Karpenter: set GPUSLICE_TEST=apiserver,matrix to run it")
	}
	bin, err := cluster.Build(t.Context(), os.Stderr, append(cluster.ControlPlane(), cluster.Karpenter())...)
	if err != nil {
		t.Fatal(err)
	}
	// Nodes have no kubelet that renews its Lease.
	server := cluster.ForTest(t, cluster.Options{Bin: bin, ControllerManager: true, ControllerFlags: []string{"--node-monitor-grace-period=24h"}, Scheduler: true})
	k := &karpenter{T: t}
	text, err := os.ReadFile("../../" + page)
	k.must(err)
	k.blocks = markdown.Page{Path: page, Text: string(text)}.Blocks()
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	k.must(err)
	k.Installation, err = install.New(t.Context(), server, binary, t.TempDir())
	k.must(err)
	t.Cleanup(k.Stop)
	for _, namespace := range []string{team, plain} {
		k.must(server.Namespace(t.Context(), namespace, nil))
	}
	k.must(k.Policy(t.Context(), "default", []byte(k.block("apiVersion: "+config.APIVersion))))
	k.must(k.Settle(t.Context()))
	k.startProvider()
	return k
}

// startProvider starts Karpenter with the page's NodePool, and another one. What names AWS names the provider instead.
func (k *karpenter) startProvider() {
	k.Helper()
	crds, err := cluster.KarpenterCRDs(k.Context())
	k.must(err)
	k.apply(string(bytes.Join(crds, []byte("\n---\n"))))
	k.claim = dynamic.NewForConfigOrDie(k.Server.Config).Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})
	types := filepath.Join(k.TempDir(), "types.json")
	k.must(os.WriteFile(types, []byte(instanceTypes), 0o600))
	k.must(k.Server.StartKarpenter(types))
	pool := strings.NewReplacer("karpenter.k8s.aws/instance-family", "karpenter.kwok.sh/instance-family", "karpenter.k8s.aws", "karpenter.kwok.sh", "EC2NodeClass", "KWOKNodeClass").
		Replace(k.block("kind: NodePool"))
	k.await("the definitions", func() string { // a new definition is not served at once
		var err error
		if k.Apply, err = install.NewApplier(k.Server.Config); err == nil {
			err = k.Apply.Apply(k.Context(), []byte("{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: gpu}}\n---\n"+pool+
				"\n---\n"+strings.NewReplacer("l4-shared", "a100-mig", "[g6]", "[p4d]").Replace(pool)))
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func (k *karpenter) must(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// block returns the page's YAML that holds a text.
func (k *karpenter) block(text string) string {
	k.Helper()
	yaml, found := markdown.YAML(k.blocks, text)
	if !found {
		k.Fatalf("%s shows no YAML with %q", page, text)
	}
	return yaml
}

func (k *karpenter) apply(manifest string) {
	k.Helper()
	k.must(k.Apply.Apply(k.Context(), []byte(manifest)))
}

// create creates pods of a manifest. Those of nobody tolerate what the page's pods do.
func (k *karpenter) create(namespace, manifest string, count int) {
	k.Helper()
	objects, err := install.Objects([]byte(manifest))
	k.must(err)
	for range count {
		k.made++
		u := objects[0].DeepCopy()
		u.SetNamespace(namespace)
		u.SetName(fmt.Sprintf("%s-%d", u.GetName(), k.made))
		if namespace == plain {
			k.must(unstructured.SetNestedSlice(u.Object, []any{map[string]any{"key": whole, "operator": "Exists"}}, "spec", "tolerations"))
		}
		_, err := k.Apply.Create(k.Context(), u, metav1.CreateOptions{})
		k.must(err)
	}
}

func (k *karpenter) pods(namespace string) []corev1.Pod {
	k.Helper()
	list, err := k.Server.Client.CoreV1().Pods(namespace).List(k.Context(), metav1.ListOptions{})
	k.must(err)
	return list.Items
}

// deletePods deletes them at once: no kubelet ends them.
func (k *karpenter) deletePods(namespace string) {
	k.Helper()
	k.must(k.Server.Client.CoreV1().Pods(namespace).DeleteCollection(k.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}))
}

func (k *karpenter) claims() []unstructured.Unstructured {
	k.Helper()
	list, err := k.claim.List(k.Context(), metav1.ListOptions{})
	k.must(err)
	return list.Items
}

// offers are the resources of the nodes' device plugins.
var offers = map[string]corev1.ResourceList{
	"l4-shared": {shared: resource.MustParse("4"), whole: resource.MustParse("0")},
	"a100-mig":  {mig: resource.MustParse("7"), whole: resource.MustParse("0")},
}

// runNodes makes new nodes ready, with what their device plugins offer.
func (k *karpenter) runNodes() (count int) {
	k.Helper()
	nodes := k.Server.Client.CoreV1().Nodes()
	list, err := nodes.List(k.Context(), metav1.ListOptions{})
	k.must(err)
	for i := range list.Items {
		n := &list.Items[i]
		if slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }) {
			continue
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
		for name, amount := range offers[n.Labels["example.com/gpu-pool"]] {
			n.Status.Capacity[name], n.Status.Allocatable[name] = amount, amount
		}
		_, _ = nodes.UpdateStatus(k.Context(), n, metav1.UpdateOptions{}) // a conflict: the next time
	}
	return len(list.Items)
}

// awaitNodes returns once so many pods are bound to so many nodes, and there are no others.
func (k *karpenter) awaitNodes(what, namespace string, pods, nodes int) {
	k.Helper()
	most := 0
	k.await(what, func() string {
		have := k.runNodes()
		most = max(most, len(k.claims()))
		bound, on := 0, map[string]bool{}
		for _, p := range k.pods(namespace) {
			if p.Spec.NodeName != "" {
				bound++
				on[p.Spec.NodeName] = true
			}
		}
		if bound != pods || len(on) != nodes || have != nodes || len(k.claims()) != nodes {
			return fmt.Sprintf("%d pods on %d nodes of %d (%d NodeClaims); want %d on %d", bound, len(on), have, len(k.claims()), pods, nodes)
		}
		return ""
	})
	if pods > 0 && most > nodes {
		k.Errorf("%s: %d nodes started, want %d", what, most, nodes)
	}
}

// awaitUnfit creates a pod, and returns once Karpenter reports that no instance type has its resources. It reports once for each pod, and
// before it knows its NodePools something else.
func (k *karpenter) awaitUnfit(namespace, manifest string) {
	k.Helper()
	k.await("Karpenter starts nothing without an overlay", func() string {
		if len(k.pods(namespace)) == 0 {
			k.create(namespace, manifest, 1)
		}
		name := k.pods(namespace)[0].Name
		list, err := k.Server.Client.CoreV1().Events(namespace).List(k.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		k.must(err)
		for _, e := range list.Items {
			if e.Source.Component != "karpenter" || e.Reason != "FailedScheduling" {
				continue
			}
			if strings.Contains(e.Message, "enough resources") {
				return ""
			}
			k.deletePods(namespace)
			return e.Message
		}
		return "no Event of Karpenter"
	})
}

// await polls until missing returns nothing.
func (k *karpenter) await(what string, missing func() string) {
	k.Helper()
	poll := time.NewTicker(250 * time.Millisecond)
	defer poll.Stop()
	end := time.After(3 * time.Minute)
	for {
		text := missing()
		if text == "" {
			k.Log(what)
			return
		}
		select {
		case <-poll.C:
			if k.Installation != nil {
				k.runNodes()
			}
		case <-end:
			k.Fatalf("wait for %s: %s", what, text)
		}
	}
}

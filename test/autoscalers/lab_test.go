package autoscalers

import (
	"fmt"
	"maps"
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

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/markdown"
)

const (
	team      = "research"
	plain     = "unmanaged" // its pods want no slice, and are what they request
	shared    = "nvidia.com/gpu.shared"
	whole     = "nvidia.com/gpu"
	mig       = "nvidia.com/mig-1g.10gb"
	poolLabel = "example.com/gpu-pool"
)

// lab is gpuslice with the policy of a page, beside an autoscaler whose nodes are objects alone: the test stands for their kubelets and
// device plugins, and Kubernetes' own scheduler binds the pods.
type lab struct {
	markdown.Fixture
	*install.Installation
	log    string                         // the autoscaler's, below the server's folder
	offers map[string]corev1.ResourceList // of the device plugins, by the value of poolLabel
	made   int

	readyFor time.Duration // what new nodes claim
}

func start(t *testing.T, page string, bin cluster.Bin) *lab {
	t.Helper()
	// Nodes have no kubelet that renews its Lease.
	server := cluster.ForTest(t, cluster.Options{
		Bin: bin, ControllerManager: true, ControllerFlags: []string{"--node-monitor-grace-period=24h"}, Scheduler: true,
	})
	l := &lab{Fixture: markdown.NewFixture(t, page)}
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	l.Must(err)
	l.Installation, err = install.New(t.Context(), server, binary, t.TempDir())
	l.Must(err)
	t.Cleanup(l.Stop)
	for _, namespace := range []string{team, plain} {
		l.Must(server.Namespace(t.Context(), namespace, nil))
	}
	l.Must(l.Policy(t.Context(), "default", []byte(l.Block("apiVersion: "+config.APIVersion))))
	l.Must(l.Settle(t.Context()))
	return l
}

func (l *lab) apply(manifest string) {
	l.Helper()
	l.Must(l.Apply.Apply(l.Context(), []byte(manifest)))
}

// unmanaged is a pod that requests a resource by its name, on nodes of a pool or, for "", any.
func unmanaged(name, on string) string {
	selector := ""
	if on != "" {
		selector = fmt.Sprintf("nodeSelector: {%s: %s}, ", poolLabel, on)
	}
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: plain}, "+
		"spec: {%scontainers: [{name: a, image: a, resources: {limits: {%s: 1}}}]}}", selector, name)
}

// create creates pods of a manifest. Those of nobody tolerate what the page's pods do.
func (l *lab) create(namespace, manifest string, count int) {
	l.Helper()
	objects, err := install.Objects([]byte(manifest))
	l.Must(err)
	for range count {
		l.made++
		u := objects[0].DeepCopy()
		u.SetNamespace(namespace)
		u.SetName(fmt.Sprintf("%s-%d", u.GetName(), l.made))
		if namespace == plain {
			l.Must(unstructured.SetNestedSlice(u.Object, []any{map[string]any{"key": whole, "operator": "Exists"}}, "spec", "tolerations"))
		}
		_, err := l.Apply.Create(l.Context(), u, metav1.CreateOptions{})
		l.Must(err)
	}
}

func (l *lab) pods(namespace string) []corev1.Pod {
	l.Helper()
	list, err := l.Server.Client.CoreV1().Pods(namespace).List(l.Context(), metav1.ListOptions{})
	l.Must(err)
	return list.Items
}

// deletePods deletes them at once: no kubelet ends them.
func (l *lab) deletePods(namespace string) {
	l.Helper()
	l.Must(l.Server.Client.CoreV1().Pods(namespace).DeleteCollection(l.Context(), *metav1.NewDeleteOptions(0), metav1.ListOptions{}))
}

// event returns a message about the namespace's one pod that a component has recorded for a reason.
func (l *lab) event(namespace, component, reason string) string {
	l.Helper()
	selector := "involvedObject.name=" + l.pods(namespace)[0].Name
	list, err := l.Server.Client.CoreV1().Events(namespace).List(l.Context(), metav1.ListOptions{FieldSelector: selector})
	l.Must(err)
	for _, e := range list.Items {
		if (e.Source.Component == component || e.ReportingController == component) && e.Reason == reason {
			return e.Message
		}
	}
	return ""
}

// runNodes makes new nodes ready, keeps what their device plugins offer, and returns all.
func (l *lab) runNodes() []corev1.Node {
	l.Helper()
	nodes := l.Server.Client.CoreV1().Nodes()
	list, err := nodes.List(l.Context(), metav1.ListOptions{})
	l.Must(err)
	for i := range list.Items {
		n := &list.Items[i]
		capacity := maps.Clone(n.Status.Capacity)
		maps.DeleteFunc(capacity, func(name corev1.ResourceName, _ resource.Quantity) bool { return strings.Contains(string(name), "/") })
		maps.Copy(capacity, l.offers[n.Labels[poolLabel]])
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		if ready && maps.EqualFunc(capacity, n.Status.Allocatable, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }) {
			continue
		}
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.NewTime(time.Now().Add(-l.readyFor)),
		}}
		n.Status.Capacity, n.Status.Allocatable = capacity, capacity
		_, _ = nodes.UpdateStatus(l.Context(), n, metav1.UpdateOptions{}) // a conflict: the next time
	}
	return list.Items
}

// bound counts the pods that are bound, and the nodes that they are bound to.
func (l *lab) bound(namespace string) (pods, nodes int) {
	l.Helper()
	on := map[string]bool{}
	for _, p := range l.pods(namespace) {
		if p.Spec.NodeName != "" {
			pods++
			on[p.Spec.NodeName] = true
		}
	}
	return pods, len(on)
}

// await polls until missing returns nothing.
func (l *lab) await(what string, missing func() string) {
	l.Helper()
	poll := time.NewTicker(250 * time.Millisecond)
	defer poll.Stop()
	end := time.After(3 * time.Minute)
	for {
		text := missing()
		if text == "" {
			l.Log(what)
			return
		}
		select {
		case <-poll.C:
			l.runNodes()
		case <-end:
			log, _ := os.ReadFile(filepath.Join(l.Server.Dir, l.log))
			lines := strings.Split(string(log), "\n")
			l.Fatalf("wait for %s: %s\nThe end of %s:\n%s", what, text, l.log, strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	}
}

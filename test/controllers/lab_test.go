package controllers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
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
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/markdown"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// The nodes are two L4 in four replicas each, under the pages' own name of them.
const (
	nodes  = "l4-timeslicing-renamed"
	shared = "nvidia.com/gpu.shared"
	whole  = "nvidia.com/gpu"
)

// lab is gpuslice with another project's controller, on nodes that are objects alone: Kubernetes' own scheduler binds the pods, and
// the test stands for the kubelet.
type lab struct {
	markdown.Fixture
	*install.Installation
	controller cluster.Controller
}

// start builds the controller, and starts all but it.
func start(t *testing.T, page string, c cluster.Controller, more ...cluster.Target) *lab {
	t.Helper()
	cluster.Need(t)
	if !cluster.Wanted("matrix") {
		t.Skip("compiles another project's controller: set GPUSLICE_TEST=apiserver,matrix to run it")
	}
	bin, err := cluster.Build(t.Context(), os.Stderr, append(append(cluster.ControlPlane(), c.Target()), more...)...)
	if err != nil {
		t.Fatal(err)
	}
	// No kubelet renews the nodes' Leases.
	server := cluster.ForTest(t, cluster.Options{
		Bin: bin, ControllerManager: true, ControllerFlags: []string{"--node-monitor-grace-period=24h"}, Scheduler: true,
	})
	l := &lab{Fixture: markdown.NewFixture(t, page), controller: c}
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	l.Must(err)
	l.Installation, err = install.New(t.Context(), server, binary, t.TempDir())
	l.Must(err)
	t.Cleanup(l.Stop)
	ready, err := scenarios.Nodes(nodes)
	l.Must(err)
	for _, n := range ready {
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
	}
	l.Must(l.Nodes(t.Context(), ready...))
	return l
}

// govern puts a policy into force in the namespaces that it names, and makes those.
func (l *lab) govern(document string) {
	l.Helper()
	p, problems := config.Parse("page", []byte(document))
	l.Must(problems.ToAggregate())
	for _, namespace := range p.Namespaces.Names {
		l.Must(l.Server.Namespace(l.Context(), namespace, nil))
		l.Must(l.Policy(l.Context(), namespace, []byte(document)))
	}
	source, err := scenarios.Tried(nodes)
	l.Must(err)
	var names []string
	for _, pool := range source.Pools(p.Pools, nil) {
		names = append(names, pool.Name)
	}
	l.Must(l.Settle(l.Context(), names...))
}

// define applies the definitions in folders of the controller's module, and returns once the server serves their kinds.
func (l *lab) define(folders string) {
	l.Helper()
	files, err := l.controller.CRDs(l.Context(), folders)
	l.Must(err)
	definitions := bytes.Join(files, []byte("\n---\n"))
	l.Must(l.Apply.Apply(l.Context(), definitions, "Kustomization"))
	l.await("the definitions", func() string {
		objects, err := install.Objects(definitions)
		l.Must(err)
		for _, u := range objects {
			if u.GetKind() == "CustomResourceDefinition" && !l.established(u) {
				return u.GetName()
			}
		}
		return ""
	})
	l.renew()
}

// renew makes an Applier that knows the kinds of new definitions.
func (l *lab) renew() {
	l.Helper()
	var err error
	l.Apply, err = install.NewApplier(l.Server.Config)
	l.Must(err)
}

// established reports whether the server serves the kind of a definition.
func (l *lab) established(definition *unstructured.Unstructured) bool {
	l.Helper()
	u, err := l.Apply.Get(l.Context(), definition)
	l.Must(err)
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

func (l *lab) apply(manifest string) {
	l.Helper()
	l.Must(l.Apply.Apply(l.Context(), []byte(manifest)))
}

// create creates the object of a manifest under a name in a namespace, or returns why it cannot be.
func (l *lab) create(namespace, name, manifest string) error {
	l.Helper()
	objects, err := install.Objects([]byte(manifest))
	l.Must(err)
	u := objects[0]
	u.SetNamespace(namespace)
	u.SetName(name)
	_, err = l.Apply.Create(l.Context(), u, metav1.CreateOptions{})
	return err
}

// object returns an object of a manifest as the server has it.
func (l *lab) object(manifest string) *unstructured.Unstructured {
	l.Helper()
	objects, err := install.Objects([]byte(manifest))
	l.Must(err)
	u, err := l.Apply.Get(l.Context(), objects[0])
	l.Must(err)
	return u
}

// pods are those of a namespace that have not ended.
func (l *lab) pods(namespace string) []corev1.Pod {
	l.Helper()
	list, err := l.Server.Client.CoreV1().Pods(namespace).List(l.Context(), metav1.ListOptions{})
	l.Must(err)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.DeletionTimestamp != nil
	})
}

// end ends a pod, as a kubelet reports it whose containers have done their work.
func (l *lab) end(p corev1.Pod) {
	l.Helper()
	status := corev1.PodStatus{Phase: corev1.PodSucceeded}
	for _, c := range p.Spec.Containers {
		ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, State: ended})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	l.Must(err)
	pods := l.Server.Client.CoreV1().Pods(p.Namespace)
	_, err = pods.Patch(l.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	l.Must(err)
}

// slice is what the containers with slices have, or "".
func slice(p corev1.Pod) string {
	given := promise.ClaimedPromise(&p)
	if given == nil {
		return ""
	}
	var all []string
	for i, c := range given.Containers {
		all = append(all, fmt.Sprintf("%s: %s of %s", c.Name, given.Planned.Containers[i].Memory, c.Resource))
	}
	return strings.Join(all, ", ")
}

// awaitBound returns once so many pods with the slice are bound to nodes.
func (l *lab) awaitBound(namespace, want string, count int) {
	l.Helper()
	l.await(fmt.Sprintf("%d pods with %s", count, want), func() string {
		bound := 0
		for _, p := range l.pods(namespace) {
			if p.Spec.NodeName != "" && slice(p) == want {
				bound++
			}
		}
		if bound != count {
			return fmt.Sprintf("%d are bound of %d", bound, len(l.pods(namespace)))
		}
		return ""
	})
}

// quantity reads a quantity, of which a zero has many spellings.
func quantity(text string) int64 {
	q := resource.MustParse(text)
	return q.Value()
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
		case <-end:
			log, _ := os.ReadFile(filepath.Join(l.Server.Dir, l.controller.Name+".log"))
			lines := strings.Split(string(log), "\n")
			l.Fatalf("wait for %s: %s\nThe end of the controller's log:\n%s", what, text, strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	}
}

// freePort returns a port of the loopback address that nobody listens on.
func (l *lab) freePort() int {
	l.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	l.Must(err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

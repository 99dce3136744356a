package autoscalers

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

const (
	guarded     = "gpuslice.dev/guarded"
	agents      = "agents" // its slices are guarded by agents
	accelerator = "k8s.amazonaws.com/accelerator"
	startup     = "startup-taint.cluster-autoscaler.kubernetes.io/gpu"
)

// nodeGroups are groups beside the page's: what each one's template names.
var nodeGroups = map[string]corev1.ResourceList{
	"unnamed":    {},
	"mig":        amounts(mig, "7"),
	"whole":      amounts(whole, "1"),
	"counted":    amounts(whole, "4"),
	"late":       amounts(shared, "4"),
	"tainted":    amounts(shared, "4"),
	"labelled":   amounts(shared, "4"),
	"l4-guarded": amounts(shared, "4", guarded, "1024"),
}

// TestClusterAutoscaler follows the page with Cluster Autoscaler itself.
func TestClusterAutoscaler(t *testing.T) {
	a := startClusterAutoscaler(t)
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"from none and back", a.fromNone}, {"resources that no group names", a.unnamed}, {"MIG instances", a.migInstances},
		{"a late device plugin", a.late}, {"slices move", a.move}, {"agents", a.agents}, {"shares that keep the name", a.wholeGPUs},
		{"the accelerator label", a.labelled}, // the last: scaling stops
	} {
		t.Log(step.name)
		step.run()
	}
}

func (a *clusterAutoscaler) fromNone() {
	pod := a.Block("kind: Pod\n")
	a.create(team, pod, 6)
	a.awaitNodes("6 slices in 4 of a node", team, 6, 2)
	a.awaitNone(team)
	a.create(team, pod, 1)
	a.awaitNodes("again from none", team, 1, 1)
	a.awaitNone(team)
}

func (a *clusterAutoscaler) unnamed() {
	a.create(plain, unmanaged(shared, "unnamed"), 1)
	a.awaitUnfit(plain, shared)
	a.awaitNone(plain)
}

func (a *clusterAutoscaler) migInstances() {
	a.create(plain, unmanaged(mig, ""), 8)
	a.awaitNodes("8 MIG instances in 7 of a node", plain, 8, 2)
	a.awaitNone(plain)
}

// wholeGPUs holds for shares with the name nvidia.com/gpu, of which a node has four. Cluster Autoscaler copies a node that has been ready
// for a minute.
func (a *clusterAutoscaler) wholeGPUs() {
	a.create(plain, unmanaged(whole, "counted"), 4)
	a.awaitNodes("the group names the number: 4 shares", plain, 4, 1)
	a.awaitNone(plain)
	a.readyFor = 2 * time.Minute
	a.create(plain, unmanaged(whole, "whole"), 4)
	a.awaitStarted("the group names one GPU: 4 shares", 4)
	a.await("4 shares in use, and no node without", func() string {
		have := a.look(plain)
		if bound, on := a.bound(plain); bound != 4 || on != have {
			return fmt.Sprintf("%d pods on %d nodes of %d", bound, on, have)
		}
		return ""
	})
	clear(a.started)
	a.create(plain, unmanaged(whole, "whole"), 4*4+4)
	a.awaitNodes("24 shares, with nodes that are ready", plain, 24, 6)
	a.awaitNone(plain)
}

// late holds for nodes that are ready before their shares are there.
func (a *clusterAutoscaler) late() {
	shares := a.offers["late"]
	delete(a.offers, "late")
	a.create(plain, unmanaged(shared, "late"), 1)
	a.awaitStarted("nodes that are ready without shares", 2)
	a.offers["late"] = shares
	a.awaitNone(plain)

	delete(a.offers, "tainted")
	a.create(plain, unmanaged(shared, "tainted"), 1)
	a.awaitStarted("a node with a startup taint", 1)
	a.stays(plain, 1)
	a.offers["tainted"] = shares
	a.awaitNodes("the taint removed with the shares there", plain, 1, 1)
	a.awaitNone(plain)
}

// move holds for slices of a ReplicaSet.
func (a *clusterAutoscaler) move() {
	for _, kept := range []bool{true, false} {
		a.replicaSet(5, kept)
		a.awaitNodes("5 slices", team, 5, 2)
		a.replicaSet(2, kept)
		if kept {
			a.awaitNodes("2 slices that must not move", team, 2, 2)
			a.stays(team, 2)
		} else {
			a.awaitNodes("2 slices on one node", team, 2, 1)
		}
		if moved := a.evicted > 0; moved == kept {
			a.Errorf("slices that must not move (%t): %d looks at evicted pods", kept, a.evicted)
		}
		a.Must(a.Server.Client.AppsV1().ReplicaSets(team).Delete(a.Context(), "train", metav1.DeleteOptions{}))
		a.awaitNone(team)
	}
}

func (a *clusterAutoscaler) agents() {
	a.Must(a.Server.Namespace(a.Context(), agents, nil))
	page := a.Block("apiVersion: " + config.APIVersion)
	before, after, _ := strings.Cut(page, "pools:\n") // they belong to the cluster's policy
	policy := before + "namespaces: {names: [" + agents + "]}\nguard: {mode: agent}\n" + after[strings.Index(after, "pod:\n"):]
	a.Must(a.Policy(a.Context(), agents, []byte(policy)))
	a.Must(a.Settle(a.Context()))
	a.create(agents, a.Block("kind: Pod\n"), 1)
	a.awaitUnfit(agents, guarded)
	a.awaitNone(agents)
	a.Must(a.Policy(a.Context(), "default", []byte(strings.ReplaceAll(page, "l4-shared", "l4-guarded"))))
	a.Must(a.Settle(a.Context()))
	a.create(agents, a.Block("kind: Pod\n"), 5)
	a.awaitNodes("5 slices guarded by agents", agents, 5, 2)
	a.awaitNone(agents)
	a.Must(a.Policy(a.Context(), "default", []byte(page)))
	a.Must(a.Settle(a.Context()))
}

// labelled holds for nodes with a cloud's accelerator label, whose shares are renamed.
func (a *clusterAutoscaler) labelled() {
	a.create(plain, unmanaged(shared, "labelled"), 13)
	a.awaitNodes("13 slices on nodes with the label", plain, 13, 4)
	a.await("Cluster Autoscaler stops", func() string {
		status, err := a.Server.Client.CoreV1().ConfigMaps("kube-system").Get(a.Context(), "cluster-autoscaler-status", metav1.GetOptions{})
		a.Must(err)
		if !strings.Contains(status.Data["status"], "status: Unhealthy") {
			return status.Data["status"]
		}
		return ""
	})
	a.create(team, a.Block("kind: Pod\n"), 1)
	a.stays(plain, 4)
}

type clusterAutoscaler struct {
	*lab
	started map[string]bool // nodes since there were none
	evicted int
}

func startClusterAutoscaler(t *testing.T) *clusterAutoscaler {
	t.Helper()
	cluster.Need(t)
	program := os.Getenv("CLUSTER_AUTOSCALER")
	if !cluster.Wanted("matrix") || program == "" {
		t.Skip("needs Cluster Autoscaler, which no Go module proxy has: set GPUSLICE_TEST=apiserver,matrix and CLUSTER_AUTOSCALER=PROGRAM " +
			"(github.com/kubernetes/autoscaler; the provider kwok suffices)")
	}
	bin, err := cluster.Build(t.Context(), os.Stderr, cluster.ControlPlane()...)
	if err != nil {
		t.Fatal(err)
	}
	bin[cluster.ClusterAutoscaler] = program
	a := &clusterAutoscaler{lab: start(t, "deploy/recipes/cluster-autoscaler.md", bin), started: map[string]bool{}}
	a.log = cluster.ClusterAutoscaler + ".log"
	var tags map[string]string
	a.Must(yaml.Unmarshal([]byte(a.Block(TagPrefix)), &tags))
	template, err := TaggedNode(tags)
	a.Must(err)
	templates := []*corev1.Node{template}
	a.offers = map[string]corev1.ResourceList{template.Labels[poolLabel]: template.Status.Capacity}
	for name, resources := range nodeGroups {
		n := &corev1.Node{}
		n.Labels, n.Status.Capacity = map[string]string{poolLabel: name}, resources.DeepCopy()
		switch name {
		case "tainted":
			n.Spec.Taints = []corev1.Taint{{Key: startup, Effect: corev1.TaintEffectNoSchedule}}
		case "labelled":
			n.Labels[accelerator] = "nvidia-l4"
		case "l4-guarded":
			n.Spec.Taints = template.Spec.Taints
		}
		templates = append(templates, n)
		a.offers[name] = resources.DeepCopy()
	}
	a.offers["whole"] = amounts(whole, "4")
	a.Must(a.configure(templates))
	a.Must(a.Server.StartClusterAutoscaler("--scan-interval=1s", "--scale-down-delay-after-add=1s", "--scale-down-unneeded-time=5s",
		"--scale-down-unready-time=5s", "--node-delete-delay-after-taint=0s",
		"--unremovable-node-recheck-timeout=1s", "--max-node-startup-time=20s"))
	return a
}

// configure writes what the provider reads.
func (a *clusterAutoscaler) configure(templates []*corev1.Node) error {
	var text strings.Builder
	for _, n := range templates {
		n.APIVersion, n.Kind, n.Name = "v1", "Node", n.Labels[poolLabel]
		n.Annotations = map[string]string{"cluster-autoscaler.kwok.nodegroup/max-count": "20"}
		for name, amount := range amounts("cpu", "4", "memory", "16Gi", "pods", "110") {
			n.Status.Capacity[name] = amount
		}
		n.Status.Allocatable = n.Status.Capacity
		document, err := yaml.Marshal(n)
		if err != nil {
			return fmt.Errorf("write template of %s: %w", n.Name, err)
		}
		text.WriteString("---\n" + string(document))
	}
	settings := fmt.Sprintf("{apiVersion: v1alpha1, readNodesFrom: configmap, configmap: {name: templates}, nodegroups: {fromNodeLabelKey: %s}, "+
		"nodes: {skipTaint: true, gpuConfig: {gpuLabelKey: %s, availableGPUTypes: {nvidia-l4: {}}}}}", poolLabel, accelerator)
	for name, data := range map[string][2]string{"kwok-provider-config": {"config", settings}, "templates": {"templates", text.String()}} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{data[0]: data[1]}}
		if _, err := a.Server.Client.CoreV1().ConfigMaps("kube-system").Create(a.Context(), cm, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create ConfigMap %s: %w", name, err)
		}
	}
	return nil
}

// amounts returns quantities of names.
func amounts(namesAndQuantities ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for pair := range slices.Chunk(namesAndQuantities, 2) {
		list[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return list
}

// replicaSet makes or changes the number of the page's pods, which may have to stay where they are.
func (a *clusterAutoscaler) replicaSet(replicas int32, stay bool) {
	a.Helper()
	objects, err := install.Objects([]byte(a.Block("kind: Pod\n")))
	a.Must(err)
	text, err := yaml.Marshal(objects[0].Object)
	a.Must(err)
	pod := &corev1.Pod{}
	a.Must(yaml.Unmarshal(text, pod))
	labels, annotations := pod.Labels, map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": strconv.FormatBool(!stay)}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: team}}
	set.APIVersion, set.Kind = "apps/v1", "ReplicaSet"
	set.Spec = appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: pod.Spec}}
	manifest, err := yaml.Marshal(set)
	a.Must(err)
	a.apply(string(manifest))
}

// look stands for the kubelets, and returns how many nodes there are.
func (a *clusterAutoscaler) look(namespace string) int {
	a.Helper()
	nodes := a.runNodes()
	for i := range nodes {
		n := &nodes[i]
		a.started[n.Name] = true
		if len(a.offers[n.Labels[poolLabel]]) > 0 && len(n.Spec.Taints) > 0 && n.Spec.Taints[0].Key == startup {
			n.Spec.Taints = n.Spec.Taints[1:]
			_, _ = a.Server.Client.CoreV1().Nodes().Update(a.Context(), n, metav1.UpdateOptions{}) // a conflict: the next time
		}
	}
	for _, p := range a.pods(namespace) {
		if p.DeletionTimestamp != nil {
			if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
			}) {
				a.evicted++
			}
			_ = a.Server.Client.CoreV1().Pods(namespace).Delete(a.Context(), p.Name, *metav1.NewDeleteOptions(0))
		}
	}
	return len(nodes)
}

// awaitNodes returns once so many pods are bound to so many nodes, and there are no others, nor were since there were none.
func (a *clusterAutoscaler) awaitNodes(what, namespace string, pods, nodes int) {
	a.Helper()
	before := len(a.started)
	a.await(what, func() string {
		have := a.look(namespace)
		if bound, on := a.bound(namespace); bound != pods || on != nodes || have != nodes {
			return fmt.Sprintf("%d pods on %d nodes of %d; want %d on %d", bound, on, have, pods, nodes)
		}
		return ""
	})
	if len(a.started) > max(nodes, before) {
		a.Errorf("%s: %d nodes started, want %d", what, len(a.started), nodes)
	}
}

// awaitNone deletes all pods, and returns once there are no nodes.
func (a *clusterAutoscaler) awaitNone(namespace string) {
	a.Helper()
	a.deletePods(namespace)
	a.await("back to none", func() string {
		if have := a.look(namespace); have > 0 {
			return fmt.Sprintf("%d nodes", have)
		}
		return ""
	})
	clear(a.started)
}

// awaitStarted returns once so many nodes have started since there were none.
func (a *clusterAutoscaler) awaitStarted(what string, nodes int) {
	a.Helper()
	a.await(what, func() string {
		a.look(plain)
		if len(a.started) < nodes {
			return fmt.Sprintf("%d nodes started, want %d", len(a.started), nodes)
		}
		return ""
	})
}

// stays holds that for ten scans no other node starts, nor one ends.
func (a *clusterAutoscaler) stays(namespace string, nodes int) {
	a.Helper()
	end := time.Now().Add(10 * time.Second)
	for time.Now().Before(end) {
		if have := a.look(namespace); have != nodes {
			a.Fatalf("%d nodes, want %d", have, nodes)
		}
		time.Sleep(250 * time.Millisecond)
	}
	if len(a.started) != nodes {
		a.Errorf("%d nodes started, want %d", len(a.started), nodes)
	}
}

// awaitUnfit returns once Cluster Autoscaler reports that no group has the resource, having started nothing.
func (a *clusterAutoscaler) awaitUnfit(namespace, name string) {
	a.Helper()
	a.await("no group has "+name, func() string {
		a.look(namespace)
		message := a.event(namespace, cluster.ClusterAutoscaler, "NotTriggerScaleUp")
		if !strings.Contains(message, "Insufficient "+name) {
			return fmt.Sprintf("its Event: %q", message)
		}
		return ""
	})
	if len(a.started) > 0 {
		a.Errorf("%d nodes start for %s", len(a.started), name)
	}
}

package chart

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/install"
)

// team is the tenant's namespace.
const team = "team-a"

// startNode starts the one node of this package's box.
var startNode = sync.OnceValues(func() (*install.OnNode, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return install.StartOpenNode(ctx, box.Dir(), 1)
})

// bareNode returns the node, without gpuslice, or skips the test where no node was asked for.
func bareNode(t *testing.T) *install.OnNode {
	t.Helper()
	if !cluster.Wanted("node") {
		t.Skip("starts a real node: set GPUSLICE_TEST=node to run it, as root")
	}
	n, err := startNode()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNode goes the whole way once with each source of certificates.
func TestNode(t *testing.T) {
	t.Run("from install to nothing left", func(t *testing.T) {
		n := bareNode(t)
		startCertManager(t, n)
		before := objects(t, n.Config)
		for _, s := range sources() {
			if !t.Run(s.name, func(t *testing.T) { s.fromInstallToNothingLeft(t, n, before) }) {
				return // the next one would find what this one left
			}
		}
	})
}

func (s source) fromInstallToNothingLeft(t *testing.T, n *install.OnNode, before []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	h := newHelm(t, n.Kubeconfig)
	namespaced := []string{"--namespace=" + api.SystemNamespace}
	values := append(s.values(t, n), version(install.Tag), "--wait", "--timeout=3m", "--set=policies.default.apiVersion=gpuslice.dev/v1")
	first := append(slices.Clone(values), "--create-namespace", "--set=replicas=2")
	if s.from != "" {
		first = append(first, s.from) // of a value that is set twice the last counts
	}
	h.run(slices.Concat(namespaced, []string{"install", release, chartFolder}, first)...)
	if err := n.Settle(ctx, install.SharedResource); err != nil {
		t.Fatal(err)
	}
	if err := n.Namespace(ctx, team, nil); err != nil {
		t.Fatal(err)
	}
	runsInASlice(t, n)

	stop := creates(t, n)
	h.run(slices.Concat(namespaced, []string{"upgrade", release, chartFolder, "--set=replicas=3,log.level=debug"}, values)...)
	stop()
	if err := n.AwaitWebhook(ctx); err != nil {
		t.Fatal(err)
	}
	d, err := n.Client.AppsV1().Deployments(api.SystemNamespace).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Status.ReadyReplicas != 3 {
		t.Errorf("after the upgrade %d replicas are ready", d.Status.ReadyReplicas)
	}
	h.run(append(slices.Clone(namespaced), "test", release, "--logs", "--timeout=2m")...)

	if err := n.Client.CoreV1().Namespaces().Delete(ctx, team, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.run(append(namespaced, "uninstall", release, "--wait", "--timeout=3m")...)
	awaitObjects(t, n.Config, slices.Concat(before, left, s.left))
	clearAway(t, n, before)
}

// clearAway removes gpuslice's namespace, and waits until nothing but what was there before is left.
func clearAway(t *testing.T, n *install.OnNode, before []string) {
	t.Helper()
	if err := n.Client.CoreV1().Namespaces().Delete(t.Context(), api.SystemNamespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitObjects(t, n.Config, before)
}

// tenant is a pod as its author writes it, with one label.
func tenant(name string) *corev1.Pod {
	grace := int64(1)
	one := corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelMemory: "4Gi"}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{
			{Name: "trainer", Image: install.TenantImage, Args: []string{"hold", "1GiB"}, Resources: corev1.ResourceRequirements{Limits: one}}}},
	}
}

// runsInASlice creates a pod and waits until its own container and the guard run.
func runsInASlice(t *testing.T, n *install.OnNode) {
	t.Helper()
	pods := n.Client.CoreV1().Pods(team)
	if _, err := pods.Create(t.Context(), tenant("sliced"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func() string {
		p, err := pods.Get(t.Context(), "sliced", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if why := unsliced(p); why != "" {
			t.Fatal(why)
		}
		running := p.Status.Phase == corev1.PodRunning && len(p.Status.ContainerStatuses) == 1 &&
			p.Status.ContainerStatuses[0].State.Running != nil
		for _, c := range p.Status.InitContainerStatuses {
			running = running && (c.Name != limits.GuardContainer || c.State.Running != nil)
		}
		if !running {
			return fmt.Sprintf("the pod does not run: %+v", p.Status)
		}
		return ""
	})
}

// unsliced says why a pod did not come out in a slice, or "".
func unsliced(p *corev1.Pod) string {
	if _, ok := p.Spec.Containers[0].Resources.Limits[install.SharedResource]; !ok {
		return fmt.Sprintf("its container asks for %v", p.Spec.Containers[0].Resources.Limits)
	}
	for _, c := range p.Spec.InitContainers {
		if c.Name == limits.GuardContainer {
			return ""
		}
	}
	return "it has no guard"
}

// creates asks, again and again, what a pod would come out as, until the function that it returns is called. A pod that
// is denied, or passes as it is, fails the test.
func creates(t *testing.T, n *install.OnNode) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	asked := 0
	running.Go(func() {
		for ctx.Err() == nil {
			p, err := n.Client.CoreV1().Pods(team).Create(ctx, tenant("asking"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("create %d during the upgrade: %v", asked, err)
			} else if why := unsliced(p); why != "" {
				t.Errorf("create %d during the upgrade: %s", asked, why)
			}
			asked++
		}
	})
	return func() {
		cancel()
		running.Wait()
		if asked < 20 {
			t.Errorf("only %d creates fell into the upgrade", asked)
		}
		t.Logf("%d creates during the upgrade", asked)
	}
}

package cgroupv2

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/memoryapi"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

const (
	namespace = "team-a"
	nodeName  = "gpu-1"
)

// given is what guard and agent enforce: trainer and scorer have 8Gi each. The second termination of a container ends all of it.
func given() limits.Limits {
	l := limits.Default()
	l.Grace, l.TermGrace, l.Settle, l.MaxTerminations = 300*time.Millisecond, 10*time.Second, 300*time.Millisecond, 1
	for _, name := range []string{"trainer", "scorer"} {
		l.Containers = append(l.Containers, limits.Container{Name: name, SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1})
	}
	return l
}

// tenant is a container that uses the device.
func tenant(name string, steps ...string) process {
	return process{container: name, args: append([]string{tenantProgram, "device 0"}, steps...)}
}

// Messages about what was terminated.
var (
	terminatedProcess   = regexp.MustCompile(`gpuslice terminated tenant \(pid \d+, 9Gi\) in trainer: 9Gi of 8Gi on GPU-`)
	terminatedContainer = regexp.MustCompile(`gpuslice terminated every process in trainer: 10Gi of 8Gi on GPU-`)
)

// many are the steps of four processes that are past their container's slice together.
func many() []string { return []string{"fork 3 2GiB", "hold 4GiB"} }

// wantTerminated fails the test unless the container's process was ended by SIGTERM, which the tenant turns into a status.
func (c *container) wantTerminated() {
	c.Helper()
	if state := c.wait(0); state.ExitCode() != 128+int(unix.SIGTERM) {
		c.Errorf("%s ended with %s", c.name, state)
	}
}

// runGuard runs the pod's guard.
func (p *pod) runGuard() *container {
	p.Helper()
	env := []string{fakegpu.ConfigVariable + "=" + fakegpu.Config{Driver: "580.95.05"}.String()}
	for _, v := range given().Env() {
		env = append(env, v.Name+"="+v.Value)
	}
	guard := p.run(process{container: limits.GuardContainer, args: []string{guardProgram, "run"},
		env: env, capabilities: []string{"CAP_KILL"}})
	guard.await(0, regexp.MustCompile(`"msg":"started"`))
	return guard
}

func testGuard(t *testing.T, l layout, _ kubernetes.Interface) {
	p := newPod(t, l, "guarded")
	p.shareProcesses()
	guard := p.runGuard()
	scorer := p.run(tenant("scorer", "hold 7GiB"))
	p.run(tenant("trainer", "hold 9GiB")).wantTerminated()
	guard.await(0, terminatedProcess)

	workers := p.create(tenant("trainer", many()...))
	workers.moveBelow()
	workers.start()
	workers.wantTerminated()
	guard.await(0, terminatedContainer)
	workers.wantEmpty()
	scorer.neverNoticed()
}

// agentNode is what tenants of the agent's pods name, so that it counts no others.
const agentNode = "agent"

// startAgent runs the agent, in a pod of its own, and returns a client of its API server.
func startAgent(t *testing.T) kubernetes.Interface {
	t.Helper()
	server, err := memoryapi.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	client, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"users: [{name: a, user: {}}]\ncurrent-context: a\n", server.Config.Host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPod(t, layouts[0], "agent")
	agent := p.run(process{
		container: "agent", node: true, capabilities: []string{"CAP_KILL"}, files: map[string]string{"/etc/kubeconfig": config},
		args: []string{agentProgram, "--node=" + nodeName, "--namespace=gpuslice-system", "--kubeconfig=/etc/kubeconfig",
			"--listen=127.0.0.1:8080", "--device-plugins=/tmp"},
		env: []string{fakegpu.ConfigVariable + "=" + fakegpu.Config{Driver: "535.104.05", Node: agentNode}.String()},
	})
	agent.await(0, regexp.MustCompile(`"msg":"started"`))
	return client
}

// byAgent is tenant for a pod of the agent's.
func byAgent(name string, steps ...string) process {
	return tenant(name, append([]string{"node " + agentNode}, steps...)...)
}

// promised returns the pod as the API server has it, with these containers.
func (p *pod) promised(containers ...*container) *corev1.Pod {
	var env []map[string]string
	for _, v := range given().Env() {
		env = append(env, map[string]string{"name": v.Name, "value": v.Value})
	}
	text, err := json.Marshal(map[string]any{"v": 1, "namespace": namespace, "guard": map[string]any{"agent": true, "env": env}})
	if err != nil {
		p.Fatal(err)
	}
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.name, UID: types.UID(p.uid),
			Annotations: map[string]string{api.AnnotationPromise: string(text)}},
		Spec:   corev1.PodSpec{NodeName: nodeName},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range containers {
		object.Status.ContainerStatuses = append(object.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: c.name, ContainerID: "containerd://" + c.id})
	}
	return object
}

// wantEvent waits for an Event of the agent's about the pod.
func (p *pod) wantEvent(client kubernetes.Interface, message *regexp.Regexp) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	events, err := client.CoreV1().Events(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		event, ok := e.Object.(*corev1.Event)
		if ok && string(event.InvolvedObject.UID) == p.uid && event.Reason == observe.ReasonTerminated && message.MatchString(event.Message) {
			return
		}
	}
	p.Fatalf("there is no Event %s", message)
}

func testAgent(t *testing.T, l layout, client kubernetes.Interface) {
	p := newPod(t, l, "agents")
	scorer, hog := p.run(byAgent("scorer", "hold 7GiB")), p.run(byAgent("trainer", "hold 9GiB"))
	pods := client.CoreV1().Pods(namespace)
	if _, err := pods.Create(t.Context(), p.promised(scorer, hog), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pods.Delete(context.WithoutCancel(t.Context()), p.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	hog.wantTerminated()
	p.wantEvent(client, terminatedProcess)

	workers := p.create(byAgent("trainer", many()...))
	workers.moveBelow()
	if _, err := pods.Update(t.Context(), p.promised(scorer, workers), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	workers.start()
	workers.wantTerminated()
	p.wantEvent(client, terminatedContainer)
	workers.wantEmpty()
	scorer.neverNoticed()
}

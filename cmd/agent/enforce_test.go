package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/fakegpu/pod"
)

// built is what all tests share: the fake library and the tenant.
var built struct{ library, tenant string }

func TestMain(m *testing.M) {
	var err error
	built.library, built.tenant, err = fakegpu.BuildForTests(context.Background())
	if errors.Is(err, fakegpu.ErrNoCompiler) {
		fmt.Println("SKIP: cmd/agent:", err)
		return
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(filepath.Dir(built.tenant))
	os.Exit(code)
}

const nodeName = "gpu-1"

// uidOf returns the UID of a test's pod, idOf the ID of its container.
func uidOf(name string) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", len(name), name[:min(6, len(name))])
}
func idOf(name string) string { return fmt.Sprintf("%064x", name) }

// promisedPod returns a pod of the node whose trainer was promised 8Gi of one GPU.
func promisedPod(name string, agent bool) *corev1.Pod {
	l := limits.Default()
	l.Grace, l.TermGrace, l.Settle = 500*time.Millisecond, time.Second, time.Second
	l.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	text, err := json.Marshal(map[string]any{"v": 1, "namespace": "team-a", "guard": map[string]any{"agent": agent, "env": variables(l)}})
	if err != nil {
		panic(err)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(uidOf(name)),
			Annotations: map[string]string{api.AnnotationPromise: string(text)}},
		Spec: corev1.PodSpec{NodeName: nodeName},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "trainer", ContainerID: "containerd://" + idOf(name)}}},
	}
}

func variables(l limits.Limits) (list []map[string]string) {
	for _, v := range l.Env() {
		list = append(list, map[string]string{"name": v.Name, "value": v.Value})
	}
	return list
}

// cluster is an agent on a node with pods.
type cluster struct {
	t      *testing.T
	node   pod.Node
	client *fake.Clientset
	events watch.Interface
	leases watch.Interface
	url    string
	log    *safeBuffer
}

// safeBuffer is a log that is read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(text)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// agentOn starts an agent over a node with these pods.
func agentOn(t *testing.T, c fakegpu.Config, pods ...runtime.Object) *cluster {
	t.Helper()
	n, err := pod.NewNode(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range n.Environment(c) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	client := fake.NewClientset(pods...)
	written, err := client.CoreV1().Events("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	leases, err := client.CoordinationV1().Leases("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &cluster{t: t, node: n, client: client, events: written, leases: leases, url: "http://" + l.Addr().String(), log: &safeBuffer{}}
	o := options{node: nodeName, namespace: "gpuslice-system", nvmlLibrary: built.library,
		procDir: n.Root(), devicePlugins: t.TempDir(), logLevel: "info"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- enforce(ctx, o, client, l, s.log) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	return s
}

// tenant starts a tenant of device 0 in a pod's trainer.
func (c *cluster) tenant(name, script string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.Command(built.tenant, "device 0", "node", c.node.Name(), script)
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := c.node.Add(cmd.Process.Pid, uidOf(name), idOf(name)); err != nil {
		c.t.Fatal(err)
	}
	return cmd
}

// await returns the first Event with the reason.
func (c *cluster) await(reason string) *corev1.Event {
	c.t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case e := <-c.events.ResultChan():
			if event, ok := e.Object.(*corev1.Event); ok && event.Reason == reason {
				return event
			}
		case <-late:
			c.t.Fatalf("no Event %s\n%s", reason, c.log)
		}
	}
}

func (c *cluster) get(path string) (int, string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// awaitLease waits for a Lease that is renewed.
func (c *cluster) awaitLease(name string) {
	c.t.Helper()
	for {
		held, err := c.client.CoordinationV1().Leases("gpuslice-system").Get(c.t.Context(), name, metav1.GetOptions{})
		if err == nil && held.Spec.RenewTime != nil && time.Since(held.Spec.RenewTime.Time) < lease.Duration {
			return
		}
		select {
		case <-c.leases.ResultChan():
		case <-time.After(time.Minute):
			c.t.Fatalf("the Lease: %+v, %v", held, err)
		}
	}
}

func TestEnforce(t *testing.T) {
	c := agentOn(t, fakegpu.Config{Driver: "535.104.05", Fault: fakegpu.Fault{Usage: "own"}},
		promisedPod("hog", true), promisedPod("neighbor", true), promisedPod("sidecar", false))
	neighbor, guarded := c.tenant("neighbor", "hold 7GiB"), c.tenant("sidecar", "hold 9GiB")
	hog := c.tenant("hog", "hold 9GiB ignore-term")

	near, ended := c.await(reasonNearLimit), c.await(reasonTerminated)
	for _, e := range []*corev1.Event{near, ended} {
		if e.InvolvedObject.Name != "hog" || e.InvolvedObject.Namespace != "team-a" ||
			e.Source.Host != nodeName || e.Type != corev1.EventTypeWarning {
			t.Errorf("the Event: %+v", e)
		}
	}
	want := fmt.Sprintf("gpuslice terminated tenant (pid %d, 9Gi) in trainer: 9Gi of 8Gi on GPU-", hog.Process.Pid)
	if !strings.HasPrefix(ended.Message, want) || !strings.HasSuffix(ended.Message, remedy) {
		t.Errorf("the Event says %q, want %q", ended.Message, want)
	}
	if err := hog.Wait(); err == nil || hog.ProcessState.String() != "signal: killed" {
		t.Errorf("the hog: %v", hog.ProcessState)
	}
	for _, p := range []*exec.Cmd{neighbor, guarded} {
		if err := p.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("a pod within its slice, or with a sidecar: %v", err)
		}
	}
	if code, text := c.get("/readyz"); code != http.StatusOK {
		t.Errorf("not ready: %d %s", code, text)
	}
	_, metrics := c.get("/metrics")
	for _, line := range []string{
		`gpuslice_agent_terminations_total{container="trainer",namespace="team-a",pod="hog",result="terminated"} 1`,
		`gpuslice_agent_memory_slice_bytes{container="trainer",namespace="team-a",pod="neighbor"} 8.589934592e+09`,
		`gpuslice_agent_pods 2`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no line %q in\n%s", line, metrics)
		}
	}
	c.awaitLease("gpuslice-agent-gpu-1")
}

// TestNotEnforced: a node with a lost device has agents and pods all the same, of
// which the Lease names those that may use it.
func TestNotEnforced(t *testing.T) {
	lost := fakegpu.Fault{Fail: []fakegpu.Fail{{Call: "nvmlDeviceGet*RunningProcesses*", Return: "GPU_IS_LOST"}}}
	c := agentOn(t, fakegpu.Config{Devices: 2, On: map[int]fakegpu.Fault{1: lost}}, promisedPod("on-it", true), promisedPod("beside", true))
	c.tenant("beside", "hold 1GiB")
	for {
		select {
		case change := <-c.leases.ResultChan():
			changed, ok := change.Object.(*coordinationv1.Lease)
			if !ok {
				t.Fatalf("%+v", change)
			}
			if reason := lease.Read(changed.Annotations).NotEnforced[uidOf("on-it")]; strings.Contains(reason, "GPU-") {
				return
			}
		case <-time.After(time.Minute):
			t.Fatal("the Lease does not name the pod")
		}
	}
}

// TestHungDevice: one device of which the driver does not answer is no other's fault.
func TestHungDevice(t *testing.T) {
	hangs := fakegpu.Fault{Hang: []string{"nvmlDeviceGet*RunningProcesses*"}}
	c := agentOn(t, fakegpu.Config{Devices: 2, On: map[int]fakegpu.Fault{1: hangs}}, promisedPod("hog", true))
	c.tenant("hog", "hold 9GiB ignore-term")
	c.await(reasonTerminated)
	if code, text := c.get("/readyz"); code != http.StatusOK {
		t.Errorf("not ready: %d %s", code, text)
	}
	_, metrics := c.get("/metrics")
	for _, line := range []string{
		`gpuslice_agent_device_unreadable{device="GPU-00000000-0000-4000-8000-000000000000"} 0`,
		`gpuslice_agent_device_unreadable{device="GPU-00000000-0000-4000-8000-000000000001"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no line %q in\n%s", line, metrics)
		}
	}
	c.awaitLease("gpuslice-agent-gpu-1")
}

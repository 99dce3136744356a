package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/fakegpu/pod"
	"github.com/gpuslice/gpuslice/test/memoryapi"
)

const (
	nodeName    = "gpu-1"
	nodeDevices = 8
)

// node prints the cost of guarding so many pods of one node, each of one process within its slice: by an agent, by one
// that samples as often as it does, since all pods are near their limits, and by a sidecar for each.
func (k *kit) node(ctx context.Context, pods int, d time.Duration) error {
	for _, by := range []struct {
		name  string
		start func(context.Context, int, string) (guards []*exec.Cmd, stop func(), err error)
	}{{"one agent", k.startAgent("hold 4GiB")},
		{"one agent, near the limits", k.startAgent("hold 8000MiB")}, {"as many sidecars", k.startSidecars}} {
		trace := filepath.Join(k.dir, "calls of "+by.name)
		guards, stop, err := by.start(ctx, pods, trace)
		if err == nil {
			err = k.watch(fmt.Sprintf("%d pods, %s", pods, by.name), guards, trace, d)
		}
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// watch prints the guards' use while nothing happens.
func (k *kit) watch(name string, guards []*exec.Cmd, trace string, d time.Duration) error {
	time.Sleep(10 * time.Second) // past the start
	sum := func() (total time.Duration, mib float64, err error) {
		for _, g := range guards {
			ran, err := cpu(g.Process.Pid)
			if err != nil {
				return 0, 0, err
			}
			resident, err := residentMiB(g.Process.Pid)
			if err != nil {
				return 0, 0, err
			}
			total, mib = total+ran, mib+resident
		}
		return total, mib, nil
	}
	callsBefore, err := os.ReadFile(trace)
	if err != nil {
		return fmt.Errorf("no NVML call of %s: %w", name, err)
	}
	before, _, err := sum()
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(d)
	after, mib, err := sum()
	if err != nil {
		return err
	}
	took := time.Since(began)
	callsAfter, err := os.ReadFile(trace)
	if err != nil {
		return err
	}
	calls := bytes.Count(callsAfter, []byte("\n")) - bytes.Count(callsBefore, []byte("\n"))
	fmt.Printf("%-37s %.0f MiB, %.2f %% of a core, %.0f NVML calls a second\n", name, mib,
		100*float64(after-before)/float64(took), float64(calls)/took.Seconds())
	return nil
}

func traced(trace string) string { return "GPUSLICE_FAKE_GPU_TRACE=" + trace }

// startSidecars starts a guard and a tenant for each pod. Each sees its own device, as in a container.
func (k *kit) startSidecars(_ context.Context, pods int, trace string) (guards []*exec.Cmd, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	for range pods {
		g, err := k.start(nil, io.Discard, traced(trace))
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, g.stop)
		tenant, _, err := g.run("hold 4GiB")
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, func() { end(tenant) })
		guards = append(guards, g.cmd)
	}
	return guards, stop, nil
}

// startAgent returns a function that starts an agent over a node with a tenant in each pod.
func (k *kit) startAgent(script string) func(context.Context, int, string) ([]*exec.Cmd, func(), error) {
	return func(ctx context.Context, pods int, trace string) ([]*exec.Cmd, func(), error) {
		return k.startAgentOver(ctx, script, pods, trace)
	}
}

func (k *kit) startAgentOver(ctx context.Context, script string, pods int, trace string) (guards []*exec.Cmd, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	root, err := os.MkdirTemp(k.dir, "node")
	if err != nil {
		return nil, stop, err
	}
	n, err := pod.NewNode(root)
	if err != nil {
		return nil, stop, err
	}
	server, err := memoryapi.Start()
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, server.Stop)
	for i := range pods {
		uid, id := fmt.Sprintf("%08d-0000-4000-8000-000000000000", i), fmt.Sprintf("%064x", i)
		tenant := exec.CommandContext(ctx, k.tenant, fmt.Sprintf("device %d", i%nodeDevices), "node", n.Name(), script)
		if err := errors.Join(tenant.Start(), server.Put(promised(uid, id))); err != nil {
			return nil, stop, err
		}
		stops = append(stops, func() { end(tenant) })
		if err := n.Add(tenant.Process.Pid, uid, id); err != nil {
			return nil, stop, err
		}
	}
	config := filepath.Join(k.dir, "kubeconfig")
	written := clientcmdapi.Config{CurrentContext: "c", Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}},
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.Config.Host}}}
	if err := clientcmd.WriteToFile(written, config); err != nil {
		return nil, stop, err
	}
	agent := exec.CommandContext(ctx, k.agent, "--node", nodeName, "--kubeconfig", config, "--nvml-library", k.library, "--proc-dir", root,
		"--listen", "127.0.0.1:0", "--log-level", "error")
	agent.Env = append(append(os.Environ(), traced(trace)),
		n.Environment(fakegpu.Config{Devices: nodeDevices, Fault: fakegpu.Fault{Usage: "own", Memory: 160 * fakegpu.GiB}})...)
	agent.Stderr = os.Stderr
	if err := agent.Start(); err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() { end(agent) })
	return []*exec.Cmd{agent}, stop, nil
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// promised is a running pod of the node whose trainer was promised 8Gi.
func promised(uid, id string) *unstructured.Unstructured {
	l := limits.Default()
	l.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	var env []map[string]string
	for _, v := range l.Env() {
		env = append(env, map[string]string{"name": v.Name, "value": v.Value})
	}
	text, err := json.Marshal(map[string]any{"v": 1, "namespace": "team-a", "guard": map[string]any{"agent": true, "env": env}})
	if err != nil {
		panic(err) // plain data
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": "team-a", "name": "pod-" + uid[:8], "uid": uid,
			"annotations": map[string]any{api.AnnotationPromise: string(text)}},
		"spec": map[string]any{"nodeName": nodeName},
		"status": map[string]any{"phase": "Running",
			"containerStatuses": []any{map[string]any{"name": "trainer", "containerID": "containerd://" + id}}},
	}}
}

package observability

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigs "sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/child"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/markdown"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// openCostVariable names OpenCost's program, which no test builds: its module is none of ours.
const openCostVariable = "OPENCOST"

// gpuPrice is what a GPU costs in an hour.
const gpuPrice = 2.40

const (
	agentsNode   = "agents"   // a GPU of four replicas, and an agent
	sidecarsNode = "sidecars" // the same without one
	renamedNode  = "renamed"  // as agents, with the resource nvidia.com/gpu.shared
	plainNode    = "plain"    // whole GPUs
	bareNode     = "bare"     // a GPU of four replicas, and no label of GPU Feature Discovery
	deviceBytes  = 23028 << 20
	productLabel = "nvidia.com/gpu.product"
)

// costed is a pod, the part of a GPU that it is to pay for, and what its guard serves beside the truth or in its place.
type costed struct {
	namespace, name, node string
	parts                 float64 // of a slice of a quarter; 0: the GPUs that it requests
	lies                  string
	completes             bool // within the time that is computed
}

// asRequested is how many GPUs the pod pays for that pays for what it requests.
func (c costed) asRequested() float64 {
	return map[string]float64{plainNode: 2, renamedNode: 0, agentsNode: 1, sidecarsNode: 1}[c.node]
}

// costedPods are those of the run. A liar without parts says what no slice can be, and pays for what it requests.
var costedPods = []costed{
	{namespace: "vision", name: "train", node: agentsNode, parts: 1},
	{namespace: "vision", name: "eval", node: agentsNode, parts: 1},
	{namespace: "vision", name: "done", node: agentsNode, parts: 1, completes: true},
	{namespace: "vision", name: "shared", node: renamedNode, parts: 1},
	{namespace: "research", name: "whole", node: plainNode},
	{namespace: "search", name: "serve", node: sidecarsNode, parts: 1},
	// A GPU of less than no memory, beside the one that the agent measures.
	{namespace: "liars", name: "beside", node: agentsNode, parts: 1, lies: guardMetrics("GPU-9", 5e9, -5e9)},
	{namespace: "liars", name: "less", node: sidecarsNode, parts: 0.01, lies: guardMetrics("GPU-0", 0.0025*deviceBytes, deviceBytes)},
	{namespace: "liars", name: "negative", node: sidecarsNode, lies: guardMetrics("GPU-0", -40*deviceBytes, deviceBytes)},
	{namespace: "liars", name: "infinite", node: sidecarsNode, lies: guardMetrics("GPU-0", math.Inf(1), deviceBytes)},
	{namespace: "liars", name: "nan", node: sidecarsNode, lies: guardMetrics("GPU-0", math.NaN(), deviceBytes)},
	// A GPU so large that the slices of others on it would cost nothing.
	{namespace: "liars", name: "giant", node: sidecarsNode, parts: 1e-6, lies: guardMetrics("GPU-0", 0.25*deviceBytes, 1e6*deviceBytes)},
}

// TestOpenCost lets OpenCost compute what slices cost, from what gpuslice, kube-state-metrics and OpenCost serve: with our rules, and
// without.
func TestOpenCost(t *testing.T) {
	program := os.Getenv(openCostVariable)
	if program == "" {
		t.Skipf("needs OpenCost, which no Go module proxy has: set GPUSLICE_TEST=apiserver and %s=PROGRAM (github.com/opencost/opencost)",
			openCostVariable)
	}
	cluster.Need(t)
	c := newPricedCluster(t)
	with, without := c.start(program, true), c.start(program, false)
	for _, o := range []*openCost{without, with} {
		o.await(fmt.Sprintf(`count(container_gpu_allocation{namespace=~"vision|search|research|liars"}) == %d`, len(costedPods)))
	}
	with.await(fmt.Sprintf("node_gpu_count{node=%q} == 1", agentsNode))
	with.await(fmt.Sprintf("node_gpu_count{node=%q} == 4", bareNode))
	from := time.Now()
	time.Sleep(20 * time.Second) // in which each pod costs
	c.complete()
	time.Sleep(40 * time.Second) // in which all but the completed one do
	to := time.Now()
	free, sliced := without.compute(from, to, "pod"), with.compute(from, to, "pod")
	sums := map[string]float64{}
	for _, p := range costedPods {
		want := p.asRequested()
		got, gotFree := sliced[p.name].gpus(), free[p.name].gpus()
		t.Logf("%s/%s: %.4f GPUs for %.1f minutes, %.4f without the rules", p.namespace, p.name, got, sliced[p.name].Minutes, gotFree)
		if math.Abs(gotFree-want) > 0.005 {
			t.Errorf("without the rules %s/%s costs %.4f GPUs, want %v", p.namespace, p.name, gotFree, want)
		}
		if p.parts > 0 {
			want = p.parts * c.slices[p.name] / deviceBytes
		}
		if math.Abs(got-want) > 0.005 {
			t.Errorf("with the rules %s/%s costs %.4f GPUs, want %.4f", p.namespace, p.name, got, want)
		}
		sums[p.namespace] += want * gpuPrice * sliced[p.name].Minutes / 60
	}
	for namespace, got := range with.compute(from, to, "namespace") {
		if math.Abs(got.GPUCost-sums[namespace]) > 0.001 {
			t.Errorf("the namespace %s costs %.4f, want %.4f", namespace, got.GPUCost, sums[namespace])
		}
	}
}

// pricedCluster is a cluster with gpuslice and pods, and what serves metrics beside OpenCost.
type pricedCluster struct {
	markdown.Fixture
	*install.Installation
	bin    cluster.Bin
	served *httptest.Server
	slices map[string]float64 // in bytes, by pod
}

func newPricedCluster(t *testing.T) *pricedCluster {
	t.Helper()
	bin, err := cluster.Build(t.Context(), os.Stderr, append(cluster.ControlPlane(), cluster.Prometheus())...)
	if err != nil {
		t.Fatal(err)
	}
	c := &pricedCluster{Fixture: markdown.NewFixture(t, "deploy/observability/OPENCOST.md"), bin: bin, slices: map[string]float64{}}
	server := cluster.ForTest(t, cluster.Options{Bin: bin})
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	c.Must(err)
	c.Installation, err = install.New(t.Context(), server, binary, t.TempDir())
	c.Must(err)
	t.Cleanup(c.Stop)
	c.Must(c.Nodes(t.Context(), costedNodes(t)...))
	for _, namespace := range []string{"vision", "search", "research", "liars"} {
		c.Must(server.Namespace(t.Context(), namespace, nil))
	}
	c.Must(c.Policy(t.Context(), "teams",
		[]byte("apiVersion: gpuslice.dev/v1\nnamespaces: {names: [vision, search, liars]}\nstrategies: [time-slicing]\n")))
	c.Must(c.Settle(t.Context()))
	for _, p := range costedPods {
		c.run(p)
	}
	c.served = httptest.NewServer(c)
	t.Cleanup(c.served.Close)
	return c
}

// costedNodes are nodes with a GPU of four replicas each, one of them without labels, and one that shares none.
func costedNodes(t *testing.T) []*corev1.Node {
	t.Helper()
	nodes, err := scenarios.Nodes("a10-timeslicing", "a10-timeslicing", "a100-plain", "a10-timeslicing", "a10-timeslicing")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{agentsNode, sidecarsNode, plainNode, bareNode, renamedNode} {
		nodes[i].Name, nodes[i].Labels[corev1.LabelHostname] = name, name
	}
	for _, offered := range []corev1.ResourceList{nodes[4].Status.Capacity, nodes[4].Status.Allocatable} {
		offered[install.SharedResource] = offered[api.ResourceGPU]
		delete(offered, api.ResourceGPU)
	}
	nodes[4].Labels[productLabel] = "NVIDIA-A10"
	maps.DeleteFunc(nodes[3].Labels, func(name, _ string) bool { return strings.HasPrefix(name, "nvidia.com/") })
	return nodes
}

// run creates a pod, and reports that it runs on its node.
func (c *pricedCluster) run(p costed) {
	c.Helper()
	gpus := resource.MustParse(strconv.Itoa(max(1, int(p.asRequested()))))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "example.com/train:1",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"), api.ResourceGPU: gpus}},
	}}}}
	if p.node != plainNode {
		pod.Labels = map[string]string{api.LabelFraction: "0.25"}
	}
	if p.node == renamedNode {
		pod.Spec.NodeSelector = map[string]string{productLabel: "NVIDIA-A10"}
	}
	pods := c.Server.Client.CoreV1().Pods(p.namespace)
	made, err := pods.Create(c.Context(), pod, metav1.CreateOptions{})
	c.Must(err)
	for _, e := range made.Spec.Containers[0].Env {
		if e.Name == "GPUSLICE_MEMORY_BYTES" {
			c.slices[p.name], err = strconv.ParseFloat(e.Value, 64)
			c.Must(err)
		}
	}
	c.Must(pods.Bind(c.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.name},
		Target: corev1.ObjectReference{Kind: "Node", Name: p.node}}, metav1.CreateOptions{}))
	c.status(p, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}})
}

func (c *pricedCluster) status(p costed, phase corev1.PodPhase, state corev1.ContainerState) {
	c.Helper()
	pods := c.Server.Client.CoreV1().Pods(p.namespace)
	pod, err := pods.Get(c.Context(), p.name, metav1.GetOptions{})
	c.Must(err)
	pod.Status.Phase, pod.Status.ContainerStatuses = phase, []corev1.ContainerStatus{{Name: "main", State: state}}
	_, err = pods.UpdateStatus(c.Context(), pod, metav1.UpdateOptions{})
	c.Must(err)
}

// complete lets the pods end that do.
func (c *pricedCluster) complete() {
	c.Helper()
	for _, p := range costedPods {
		if p.completes {
			c.status(p, corev1.PodSucceeded,
				corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now()}})
		}
	}
}

// guardMetrics are what a guard serves of a container on a device.
func guardMetrics(device string, slice, memory float64) string {
	return fmt.Sprintf("gpuslice_guard_memory_peak_bytes{container=\"main\",device=%[1]q} 1\ngpuslice_guard_memory_slice_bytes{container=\"main\"} %[2]v\n"+
		"gpuslice_guard_device_memory_bytes{device=%[1]q,model=\"x\"} %[3]v\n", device, slice, memory)
}

// ServeHTTP is kube-state-metrics, the agent and each guard.
func (c *pricedCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/guards/"); ok {
		i := slices.IndexFunc(costedPods, func(p costed) bool { return p.name == name })
		text := costedPods[i].lies
		if text == "" {
			text = guardMetrics("GPU-0", c.slices[name], deviceBytes)
		}
		fmt.Fprint(w, text)
		return
	}
	node, agent := strings.CutPrefix(r.URL.Path, "/agents/")
	if agent {
		fmt.Fprintf(w, "gpuslice_agent_device_memory_bytes{device=\"GPU-0\",model=\"x\"} %d\n", deviceBytes)
	}
	for _, p := range costedPods {
		pod, err := c.Server.Client.CoreV1().Pods(p.namespace).Get(context.Background(), p.name, metav1.GetOptions{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		running := pod.Status.Phase == corev1.PodRunning
		of := fmt.Sprintf("namespace=%q,pod=%q,container=\"main\"", p.namespace, p.name)
		switch {
		case !agent:
			// kube-state-metrics has the requests of pods that have ended, too.
			for name, quantity := range pod.Spec.Containers[0].Resources.Requests {
				unit := map[corev1.ResourceName]string{corev1.ResourceCPU: "core", corev1.ResourceMemory: "byte"}[name]
				fmt.Fprintf(w, "kube_pod_container_resource_requests{%s,uid=%q,node=%q,resource=%q,unit=%q} %v\n", of, pod.UID, p.node,
					strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(string(name)), cmp.Or(unit, "integer"), quantity.AsApproximateFloat64())
			}
			n := 0
			if running {
				n = 1
			}
			fmt.Fprintf(w, "kube_pod_container_status_running{%s,uid=%q} %d\n", of, pod.UID, n)
		case p.node == node && (running || time.Since(pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt.Time) < 3*time.Second):
			// It is read at another moment than kube-state-metrics: as long as it may take, it has what is past.
			fmt.Fprintf(w,
				"gpuslice_agent_memory_peak_bytes{%s,device=\"GPU-0\"} 1\ngpuslice_agent_memory_slice_bytes{%s} %v\n", of, of, c.slices[p.name])
		}
	}
}

// configuration is Prometheus' for the metrics of the cluster: with what the page tells users to add, or without.
func (c *pricedCluster) configuration(address string, ours bool) string {
	c.Helper()
	target := func(job, path, address string, labels map[string]string) map[string]any {
		return map[string]any{"job_name": job, "metrics_path": path, "honor_labels": true,
			"static_configs": []any{map[string]any{"targets": []string{address}, "labels": labels}}}
	}
	served := c.served.Listener.Addr().String()
	scraped := target("opencost", "/metrics", address, nil)
	jobs := []any{scraped, target("kube-state-metrics", "/kube-state-metrics", served, nil),
		target("agents", "/agents/"+agentsNode, served, map[string]string{"node": agentsNode}),
		target("renamed", "/agents/"+renamedNode, served, map[string]string{"node": renamedNode})}
	guards := monitors(c.T)[1].Spec.PodMetricsEndpoints[0]
	for _, p := range costedPods {
		if p.node == sidecarsNode || p.lies != "" {
			job := target("guard-"+p.name, "/guards/"+p.name, served,
				map[string]string{"node": p.node, "namespace": p.namespace, "pod": p.name, "container": "gpuslice-guard"})
			job["honor_labels"], job["metric_relabel_configs"] = guards.HonorLabels, natives(guards.MetricRelabelings)
			jobs = append(jobs, job)
		}
	}
	config := map[string]any{"global": map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"scrape_configs": jobs}
	if ours {
		rules, err := filepath.Abs(shipped + "opencost.yaml")
		c.Must(err)
		config["rule_files"] = []string{rules}
		var page struct{ MetricRelabelings []relabeling }
		c.Must(sigs.Unmarshal([]byte(c.Block("metricRelabelings")), &page))
		scraped["metric_relabel_configs"] = natives(page.MetricRelabelings)
	}
	text, err := sigs.Marshal(config)
	c.Must(err)
	return string(text)
}

// openCost is a running one, and the Prometheus that it reads.
type openCost struct {
	*prometheus
	api string
}

// start runs Prometheus, and OpenCost once Prometheus has pods.
func (c *pricedCluster) start(program string, ours bool) *openCost {
	c.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	c.Must(err)
	address := l.Addr().String()
	_ = l.Close()
	o := &openCost{startPrometheus(c.T, c.bin["prometheus"], c.configuration(address, ours)), "http://" + address}
	o.await("count(kube_pod_container_status_running == 1)")
	dir := c.TempDir()
	prices := fmt.Sprintf(`{"provider": "custom", "CPU": "0.01", "RAM": "0.001", "GPU": "%v", "gpuLabel": %q}`, gpuPrice, productLabel)
	c.Must(os.WriteFile(filepath.Join(dir, "default.json"), []byte(prices), 0o600))
	var said bytes.Buffer
	cmd := exec.Command(program)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	_, port, _ := net.SplitHostPort(address)
	cmd.Env = []string{"HOME=" + dir, "KUBERNETES_PORT=set", "KUBECONFIG=" + c.Server.Kubeconfig,
		"PROMETHEUS_SERVER_ENDPOINT=http://" + o.address, "API_PORT=" + port,
		"CONFIG_PATH=" + dir, "USE_CUSTOM_PROVIDER=true", "CLUSTER_ID=test", "CACHE_WARMING_ENABLED=false",
		"CLOUD_COST_ENABLED=false", "CUSTOM_COST_ENABLED=false"}
	ended, err := child.Start(cmd)
	c.Must(err)
	c.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if c.Failed() {
			c.Logf("OpenCost said\n%s", said.Bytes()[max(0, said.Len()-20_000):])
		}
	})
	return o
}

// charge is what a pod or a namespace costs by OpenCost.
type charge struct {
	Minutes, GPUCost float64
}

// gpus is how many GPUs cost as much while the pod runs.
func (c charge) gpus() float64 { return c.GPUCost / gpuPrice / c.Minutes * 60 }

// compute asks OpenCost for what the time costs.
func (o *openCost) compute(from, to time.Time, aggregate string) map[string]charge {
	o.Helper()
	query := url.Values{"window": {from.UTC().Format(time.RFC3339) + "," + to.UTC().Format(time.RFC3339)},
		"resolution": {"5s"}, "aggregate": {aggregate}}
	response, err := http.Get(o.api + "/allocation/compute?" + query.Encode())
	if err != nil {
		o.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Code    int
		Message string
		Data    []map[string]charge
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || len(answer.Data) != 1 {
		o.Fatalf("OpenCost: %v: %+v", err, answer)
	}
	return answer.Data[0]
}

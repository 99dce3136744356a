package observability

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/markdown"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

const (
	autoscalingPage = "deploy/recipes/autoscaling.md"
	serving         = "scoring"
)

// TestAutoscaling follows the page on autoscaling: the HorizontalPodAutoscaler of the controller manager reads the recorded series by
// the page's rules for Prometheus Adapter.
func TestAutoscaling(t *testing.T) {
	cluster.Need(t)
	l := newAutoscaling(t)
	l.use(900)
	l.awaitReplicas("up to the quota and not beyond", 3)
	l.awaitEvent("ReplicaSet", "FailedCreate", "exceeded quota")
	l.awaitEvent("Deployment", "GPUSliceDenied", "limited: slices=3")

	l.await("KEDA's query", func() string {
		l.prometheus.to = time.Now()
		series, err := l.prometheus.Now(l.kedaQuery())
		if sum := 3 * 0.9; err != nil || len(series) != 1 || math.Abs(series[0].Points[0].Value-sum) > 0.001 {
			return fmt.Sprintf("%v, %v; want one series of %v", series, err, sum)
		}
		return ""
	})
	if n := len(l.pods()); n != 3 {
		t.Errorf("%d pods run, with a quota of 3", n)
	}
	l.use(20)
	l.awaitReplicas("down", 1)
	l.use(500)
	l.awaitReplicas("up to what is used: 0.5 over 0.2 each", 3)
}

// autoscaling is gpuslice with Prometheus and its adapter, and the objects of the page.
type autoscaling struct {
	markdown.Fixture
	*install.Installation
	prometheus *prometheus
	busy       atomic.Int64 // utilization of each pod, in thousandths
}

func newAutoscaling(t *testing.T) *autoscaling {
	t.Helper()
	bin, err := cluster.Build(t.Context(), os.Stderr, append(cluster.ControlPlane(), cluster.Prometheus())...)
	if err != nil {
		t.Fatal(err)
	}
	l := &autoscaling{Fixture: markdown.NewFixture(t, autoscalingPage)}
	server := cluster.ForTest(t, cluster.Options{Bin: bin, ControllerManager: true, ControllerFlags: []string{
		"--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-downscale-stabilization=1s"}})
	binary, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	l.Must(err)
	l.Installation, err = install.New(t.Context(), server, binary, t.TempDir())
	l.Must(err)
	t.Cleanup(l.Stop)
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	l.Must(err)
	l.Must(server.Namespace(t.Context(), serving, nil))
	l.Must(l.Nodes(t.Context(), nodes...))
	l.Must(l.Policy(t.Context(), serving, []byte(l.Block("apiVersion: "+config.APIVersion))))
	l.Must(l.Settle(t.Context()))

	agent := httptest.NewServer(http.HandlerFunc(l.serveMetrics))
	t.Cleanup(agent.Close)
	l.prometheus = startPrometheus(t, bin["prometheus"], fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- {job_name: agents, honor_labels: true, static_configs: [{targets: ["%s"], labels: {node: gpu-1}}]}
`, strings.TrimPrefix(agent.URL, "http://")))
	l.register(newMetricsAdapter(t, l.Block("seriesQuery"), l.prometheus, server.Client))
	l.Must(l.Apply.Apply(t.Context(), []byte(l.Block("kind: HorizontalPodAutoscaler"))))
	return l
}

// kedaQuery returns the query of the page's ScaledObject.
func (l *autoscaling) kedaQuery() string {
	_, after, _ := strings.Cut(l.Block("kind: ScaledObject"), "query: ")
	query, _, _ := strings.Cut(after, "\n")
	return query
}

// use sets the utilization of each pod, in thousandths.
func (l *autoscaling) use(busy int64) { l.busy.Store(busy) }

// serveMetrics is the kubelet and the agent of a node that runs all pods: it has them running, and serves their metrics.
func (l *autoscaling) serveMetrics(w http.ResponseWriter, r *http.Request) {
	for _, pod := range l.pods() {
		if pod.Status.Phase == corev1.PodPending {
			running := []byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
			// A pod that is deleted meanwhile needs no status.
			_, _ = l.Server.Client.CoreV1().Pods(serving).Patch(r.Context(), pod.Name,
				types.StrategicMergePatchType, running, metav1.PatchOptions{}, "status")
		}
		labels := fmt.Sprintf(`namespace=%q,pod=%q,container="server"`, serving, pod.Name)
		fmt.Fprintf(w, "gpuslice_tenant_utilization_ratio{%s,device=\"GPU-0\"} %v\n", labels, float64(l.busy.Load())/1000)
		fmt.Fprintf(w, "gpuslice_agent_memory_used_bytes{%s,device=\"GPU-0\"} %d\n", labels, 3<<30)
		fmt.Fprintf(w, "gpuslice_agent_memory_slice_bytes{%s} %d\n", labels, 4<<30)
	}
}

// pods returns those that are not being deleted; none while the API server does not answer.
func (l *autoscaling) pods() []corev1.Pod {
	list, err := l.Server.Client.CoreV1().Pods(serving).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// register makes the adapter the API server of custom.metrics.k8s.io.
func (l *autoscaling) register(adapter *metricsAdapter) {
	l.Helper()
	served := httptest.NewTLSServer(adapter)
	l.Cleanup(served.Close)
	l.Must(l.Server.Namespace(l.Context(), "monitoring", nil))
	l.Must(l.Server.SetEndpoints(l.Context(), "monitoring", "prometheus-adapter", served.Listener.Addr().String()))
	l.Must(l.Apply.Apply(l.Context(), []byte(`apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.custom.metrics.k8s.io}
spec:
  service: {name: prometheus-adapter, namespace: monitoring}
  group: custom.metrics.k8s.io
  version: v1beta1
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
`)))
}

// awaitReplicas returns once the Deployment has this many pods, which are as many as the autoscaler or the quota wants.
func (l *autoscaling) awaitReplicas(what string, want int) {
	l.Helper()
	l.await(what, func() string {
		hpa, err := l.Server.Client.AutoscalingV2().HorizontalPodAutoscalers(serving).Get(l.Context(), "classifier", metav1.GetOptions{})
		l.Must(err)
		have, desired := len(l.pods()), int(hpa.Status.DesiredReplicas)
		if have == want && desired >= want && (want > 1 || desired == 1) {
			return ""
		}
		return fmt.Sprintf("%d pods, want %d; the autoscaler wants %d: %v", have, want, desired, hpa.Status.Conditions)
	})
}

// awaitEvent returns once there is an Event on an object of a kind, with words of its message.
func (l *autoscaling) awaitEvent(kind, reason, words string) {
	l.Helper()
	l.await(reason, func() string {
		list, err := l.Server.Client.CoreV1().Events(serving).List(l.Context(), metav1.ListOptions{})
		l.Must(err)
		seen := ""
		for _, e := range list.Items {
			if e.InvolvedObject.Kind == kind && e.Reason == reason && strings.Contains(e.Message, words) {
				return ""
			}
			seen += fmt.Sprintf("\n%s %s: %s", e.InvolvedObject.Kind, e.Reason, e.Message)
		}
		return cmp.Or(seen, "no Events")
	})
}

// await polls until missing returns nothing.
func (l *autoscaling) await(what string, missing func() string) {
	l.Helper()
	poll := time.NewTicker(250 * time.Millisecond)
	defer poll.Stop()
	end := time.After(3 * time.Minute)
	for {
		text := missing()
		if text == "" {
			return
		}
		select {
		case <-poll.C:
		case <-end:
			l.Fatalf("wait for %s: %s", what, text)
		}
	}
}

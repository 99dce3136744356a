package observability

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/observability/picture"
	"github.com/gpuslice/gpuslice/test/observability/reference"
)

var update = flag.Bool("update", false, "draw the picture of the dashboard anew, from the run on the node")

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, prepare)) }

// prometheusFile and promtoolFile are where the node's box has Prometheus: it is built outside, where there is a network.
const (
	prometheusFile = "prometheus"
	promtoolFile   = "promtool"
)

func prepare(ctx context.Context, dir string) error {
	bin, err := cluster.Build(ctx, os.Stderr, cluster.Prometheus())
	if err != nil {
		return err
	}
	for _, file := range []string{prometheusFile, promtoolFile} {
		if err := os.Symlink(bin[file], filepath.Join(dir, file)); err != nil {
			return fmt.Errorf("place %s: %w", file, err)
		}
	}
	return install.Build(ctx, dir)
}

// startNode starts the one node of this package's box, with an agent.
var startNode = sync.OnceValues(func() (*install.OnNode, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	n, err := install.StartNode(ctx, box.Dir(), devices)
	if err != nil {
		return nil, err
	}
	if err := govern(ctx, n); err != nil {
		return nil, err
	}
	return n, n.StartAgent(ctx, fakegpu.Config{Devices: devices, Node: agentNode, Fault: fakegpu.Fault{Usage: "own"}})
})

// onNode returns the node, or skips the test where no node was asked for.
func onNode(t *testing.T) *install.OnNode {
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

const devices = 2

// teams are the namespaces of the runs, with what their policies say. An agent enforces the slices of search and sizing.
var teams = map[string]string{
	"vision": "guard: {mode: sidecar, act: always, grace: 1s, termGrace: 2s, metricsPort: 9400}\nquota: {memory: 40Gi, slices: 6}",
	"search": "guard: {mode: agent}\nquota: {memory: 24Gi}",
	"sizing": "guard: {mode: agent}",
}

// agentNode is what tenants of search and sizing name, so that the agent counts no others.
const agentNode = "agent"

// pods of the run, by namespace and name: the slice, and the steps of the tenant.
var pods = map[string][]string{
	"vision/train":  {"16Gi", "hold 4GiB", "grow 4GiB 14GiB 40s"},
	"vision/eval":   {"8Gi", "hold 3GiB", "wait 30s", "hold 6GiB"},
	"vision/hungry": {"8Gi", "hold 2GiB", "wait 10s", "grow 2GiB 9GiB 20s"}, // past its slice, and started again
	"search/serve":  {"12Gi", "node " + agentNode, "device 0", "hold 10GiB"},
	"search/index":  {"8Gi", "node " + agentNode, "device 0", "grow 1GiB 7GiB 60s"},
}

// silent are expressions without an answer in a run in which all is well.
var silent = map[string]bool{"Reviews a second, and failures B": true, "Part of a fair share, on full devices: lowest 10 A": true}

// TestPrometheus lets Prometheus read the webhook, the guards and the agent of a node as the PodMonitors say, under pods that
// grow, are ended and are denied, and asks it for everything that dashboard and alerts ask.
func TestPrometheus(t *testing.T) {
	t.Run("reads a real run", func(t *testing.T) {
		n := onNode(t)
		p := startPrometheus(t, filepath.Join(box.Dir(), prometheusFile), configuration(t, n.Kubeconfig), "--storage.tsdb.path=data")
		work(t, n)
		// Two minutes of each replica, three guards' ends among them, are what the picture shows.
		p.await("count(count_over_time(gpuslice_build_info[10m]) > 120) >= 3")
		p.await(`sum(gpuslice_guard_terminations_total{namespace="vision",result="terminated"}) > 0`)
		p.await(`count(gpuslice_guard_not_enforcing) >= 3 and count(gpuslice_agent_not_enforcing) >= 2`)

		p.healthy()
		compareTypes(t, p)
		board, err := picture.Read(read(t, shipped+"dashboard.json"))
		if err != nil {
			t.Fatal(err)
		}
		board.Panels = chosen(board.Panels, p.values("device")[0])
		answered(t, p, board)
		if !*update {
			return
		}
		svg, err := picture.Draw(board, p, p.from, p.to,
			fmt.Sprintf("%s of a run on one node with %d simulated GPUs of 80Gi, read by Prometheus every second",
				p.to.Sub(p.from).Round(time.Second), devices))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(shipped+"dashboard.svg", []byte(svg), 0o644); err != nil {
			t.Fatal(err)
		}
	})
}

// govern makes the namespaces, with a policy and a simulated GPU each.
func govern(ctx context.Context, n *install.OnNode) error {
	for team, settings := range teams {
		document := "apiVersion: gpuslice.dev/v1\nnamespaces: {names: [" + team + "]}\nstrategies: [time-slicing]\n" +
			settings + "\n"
		if err := n.Policy(ctx, team, []byte(document)); err != nil {
			return err
		}
		if err := n.Namespace(ctx, team, nil); err != nil {
			return err
		}
		if err := n.GPU(team, fakegpu.Config{Devices: devices}); err != nil {
			return err
		}
	}
	return n.Settle(ctx, install.SharedResource)
}

// work creates the pods of the run, and then some that are denied: for want of quota, and because nothing is that large.
func work(t *testing.T, n *install.OnNode) {
	t.Helper()
	for name, what := range pods {
		team, pod, _ := strings.Cut(name, "/")
		if err := create(n, t.Context(), team, pod, what[0], what[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		if err := create(n, t.Context(), "search", fmt.Sprintf("more-%d", i), "8Gi", "hold 1GiB"); !apierrors.IsForbidden(err) {
			t.Fatalf("beyond the quota: %v", err)
		}
		if i%3 == 0 {
			if err := create(n, t.Context(), "vision", fmt.Sprintf("huge-%d", i), "64Gi", "hold 1GiB"); !apierrors.IsForbidden(err) {
				t.Fatalf("larger than any slice: %v", err)
			}
		}
	}
}

func create(n *install.OnNode, ctx context.Context, namespace, name, memory string, steps ...string) error {
	_, err := n.Client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelMemory: memory}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(2)), Containers: []corev1.Container{{
			Name: "tenant", Image: install.TenantImage, Args: steps,
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}},
		}}},
	}, metav1.CreateOptions{})
	return err
}

// chosen are the panels for one device, as Grafana has them after its variable is set.
func chosen(panels []picture.Panel, device string) []picture.Panel {
	out := slices.Clone(panels)
	for i := range out {
		out[i].Title = strings.ReplaceAll(out[i].Title, "$device", device)
		out[i].Targets = slices.Clone(out[i].Targets)
		for n := range out[i].Targets {
			out[i].Targets[n].Expr = strings.ReplaceAll(out[i].Targets[n].Expr, "$device", device)
		}
	}
	return out
}

// compareTypes holds what is scraped against the pages of metrics.
func compareTypes(t *testing.T, p *prometheus) {
	t.Helper()
	types := p.types()
	for _, page := range []string{"webhook", "guard", "cmd/agent"} {
		for _, m := range reference.Read(string(read(t, "../../"+page+"/METRICS.md"))) {
			if have, ok := types[m.Name]; ok && have != m.Type {
				t.Errorf("%s is scraped as a %s, and %s/METRICS.md says %s", m.Name, have, page, m.Type)
			}
			delete(types, m.Name)
		}
	}
	for name := range types {
		if strings.HasPrefix(name, "gpuslice_") {
			t.Errorf("%s is scraped, and on no page", name)
		}
	}
}

// answered checks that every expression of the dashboard has an answer.
func answered(t *testing.T, p *prometheus, board picture.Board) {
	t.Helper()
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			series, err := p.Range(target.Expr)
			if err != nil {
				t.Errorf("panel %s %s: %v", panel.Title, target.RefID, err)
			} else if len(series) == 0 && !silent[panel.Title+" "+target.RefID] {
				t.Errorf("panel %s %s shows nothing: %s", panel.Title, target.RefID, target.Expr)
			}
		}
	}
}

package observability

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/test/observability/picture"
)

// play is one test of "promtool test rules": series that stand, and what expressions give after five minutes.
type play struct {
	Name     string   `json:"name"`
	Interval string   `json:"interval"`
	Series   []series `json:"input_series"`
	Asked    []asked  `json:"promql_expr_test"`
}

type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type asked struct {
	Expr    string   `json:"expr"`
	At      string   `json:"eval_time"`
	Samples []sample `json:"exp_samples"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

func stands(name string, value float64) series {
	return series{name, fmt.Sprintf("%vx10", value)}
}

// ask asks that an expression gives this many series; none is no answer, and not a zero.
func ask(expr string, many int) asked {
	a := asked{Expr: "count(" + expr + ")", At: "5m", Samples: []sample{}}
	if many > 0 {
		a.Samples = append(a.Samples, sample{"{}", float64(many)})
	}
	return a
}

// board are the dashboard's expressions by panel, with values in the place of its variables.
func board(t *testing.T) (titles []string, exprs map[string][]string) {
	t.Helper()
	b, err := picture.Read(read(t, shipped+"dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	exprs = map[string][]string{}
	for _, p := range b.Panels {
		titles = append(titles, p.Title)
		for _, target := range p.Targets {
			exprs[p.Title] = append(exprs[p.Title], replace(target.Expr, "1m", "5m"))
		}
	}
	return titles, exprs
}

func TestDashboardRows(t *testing.T) {
	t.Parallel()
	b, err := picture.Read(read(t, shipped+"dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	bottom := 0
	for _, p := range b.Panels {
		if g := p.GridPos; g.Y < bottom && g.X == 0 {
			t.Errorf("panel %s lies on the one above it", p.Title)
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			bottom = p.GridPos.Y + 1
		}
	}
	if want := []string{"Health", "Tenants", "Nodes and models", "Quota", "Webhook"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}
}

// TestDashboardShows plays all panels: where Prometheus reads nobody, where it reads the webhook alone, and a fleet.
func TestDashboardShows(t *testing.T) {
	t.Parallel()
	promtool := programs(t)["promtool"]
	_, exprs := board(t)
	nobody := play{Name: "nobody is read", Interval: "1m", Series: []series{stands("up", 0)}}
	webhook := play{Name: "the webhook alone is read", Interval: "1m",
		Series: []series{stands(`gpuslice_build_info{pod="a"}`, 1), stands(`gpuslice_ready{check="keys",pod="a"}`, 0)}}
	for _, title := range slices.Sorted(maps.Keys(exprs)) {
		for _, expr := range exprs[title] {
			nobody.Asked = append(nobody.Asked, ask(expr, 0))
		}
	}
	for _, title := range []string{"Pods read", "Not enforcing", "Devices unreadable"} { // zeros of guards that nobody reads
		webhook.Asked = append(webhook.Asked, ask(exprs[title][0], 0))
	}
	for _, title := range []string{"Replicas ready", "Pods in slices", "Weaker than planned", "Bypassed", "Without a promise"} {
		webhook.Asked = append(webhook.Asked, asked{exprs[title][0], "5m", []sample{{"{}", 0}}})
	}
	dir := t.TempDir()
	text, err := yaml.Marshal(map[string]any{"evaluation_interval": "1m", "tests": []play{nobody, webhook, fleet(exprs)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", filepath.Join(dir, "test.yaml")).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// fleet has 40 containers on 20 devices of two models in four nodes. Half have guards and half an agent. One guard's pod is a tenant's own
// program, which names a model that is none.
func fleet(exprs map[string][]string) play {
	p := play{Name: "a fleet is read", Interval: "1m"}
	for i := range 40 {
		device, node, model := i/2, i/10, []string{"NVIDIA L4", "NVIDIA A10"}[i%20/10]
		by, busy, tenant := "guard", "gpuslice_guard_utilization_ratio", fmt.Sprintf(`namespace="team-%d",pod="p-%d"`, i%3, i)
		if i%2 == 1 {
			by, busy = "agent", "gpuslice_tenant_utilization_ratio"
		}
		on := fmt.Sprintf(`%s,container="c",node="n-%d",device="GPU-%d"`, tenant, node, device)
		p.Series = append(p.Series,
			stands("gpuslice_"+by+"_memory_used_bytes{"+on+"}", float64(1+i)),
			stands("gpuslice_"+by+"_memory_slice_bytes{"+tenant+`,container="c"}`, 100),
			stands(fmt.Sprintf(`gpuslice_%s_device_memory_bytes{%s,device="GPU-%d",model="%s"}`, by, tenant, device, model), 1000),
			stands(busy+"{"+on+"}", []float64{0.95, 0.05}[i%2]+0.001), stands("gpuslice_"+by+"_not_enforcing{"+tenant+"}", 0))
	}
	p.Series = append(p.Series, stands(`gpuslice_guard_device_memory_bytes{namespace="team-0",pod="p-0",device="GPU-0",model="none"}`, 1))
	for title, many := range map[string]int{
		"GPU memory used: top 10": 10, "How full each slice is: top 10": 10, "Multiprocessors busy: top 10": 10,
		"Part of a fair share, on full devices: lowest 10": 10,
		"Multiprocessors busy, by namespace":               3,
		"Multiprocessors busy, by node":                    4,
		"GPU memory used, by node":                         4,
	} {
		p.Asked = append(p.Asked, ask(exprs[title][0], many))
	}
	for _, title := range []string{"GPU memory used, by model", "Devices read, by model"} {
		p.Asked = append(p.Asked,
			ask(strings.TrimSpace(exprs[title][0])+` unless on (model) label_replace(vector(1), "model", "none", "", "")`, 2))
	}
	p.Asked = append(p.Asked, asked{exprs["Pods read"][0], "5m", []sample{{"{}", 40}}},
		asked{exprs["Not enforcing"][0], "5m", []sample{{"{}", 0}}})
	return p
}

package plan

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/nvidia"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
	"github.com/gpuslice/gpuslice/test/openb"
)

const (
	nodeHeader = "sn,cpu_milli,memory_mib,gpu,model\n"
	podHeader  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)

// pod is a line of a trace's list.
func pod(name string, cpu, memory, devices, milli int, spec string) string {
	return fmt.Sprintf("%s,%d,%d,%d,%d,%s,LS,Running,0,1,0\n", name, cpu, memory, devices, milli, spec)
}

// command runs gpuslice plan.
func command(args ...string) (out string, err error) {
	var b bytes.Buffer
	cmd := newCommand(cli.Streams{In: strings.NewReader(""), Out: &b, Err: &b, Getenv: os.Getenv}, withTraces)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	err = cmd.Execute()
	return b.String(), err
}

// tracePrefix begins --from, in these tests, for the files of a trace: openb:NODES.csv,PODS.csv.
const tracePrefix = "openb:"

// withTraces reads what the command does, and traces: all their pods run at once, on whole GPUs.
func withTraces(o *options, ctx context.Context, s cli.Streams) (*input, error) {
	files, ok := strings.CutPrefix(o.source.From, tracePrefix)
	if !ok {
		return o.fleet(ctx, s)
	}
	var texts [2]io.Reader
	for i, path := range strings.Split(files, ",") {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		texts[i] = f
	}
	f, err := openb.Read(texts[0], texts[1])
	return &input{f, f, inventory.New(time.Time{}), nil}, err
}

// trace writes the files of a trace and returns them as --from takes them. Pods get a number before their names.
func trace(t *testing.T, nodes, pods string) string {
	t.Helper()
	dir := t.TempDir()
	lines := strings.SplitAfter(pods, "\n")
	for i, line := range lines {
		if line != "" && line[0] != ',' {
			lines[i] = fmt.Sprint(i, line)
		}
	}
	pods = strings.Join(lines, "")
	for name, text := range map[string]string{"nodes.csv": nodeHeader + nodes, "pods.csv": podHeader + pods} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tracePrefix + filepath.Join(dir, "nodes.csv") + "," + filepath.Join(dir, "pods.csv")
}

func planOf(t *testing.T, args ...string) *document {
	t.Helper()
	out, err := command(append(args, "-o", "json")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var d document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return &d
}

func TestPlan(t *testing.T) {
	const eight, ones = "a,96000,393216,8,G2\n", "a,8000,32768,1,V100M16\nb,8000,32768,1,T4\n"
	for _, c := range []struct {
		name, nodes, pods string
		args              []string
		want              string // total, today, planned, bound; waiting before, after
	}{
		{"nothing", "", "", nil, "0 0 0 0; 0 0"},
		{"no pods", eight, "", nil, "8 0 0 0; 0 0"},
		{"no nodes", "", pod("p", 1, 1, 1, 500, ""), nil, "0 0 0 0; 1 1"},
		{"halves share", eight, pod("p", 1000, 1024, 1, 500, "") + pod("q", 1000, 1024, 1, 400, ""), nil, "8 2 1 1; 0 0"},
		{"more than half does not", eight, pod("p", 1000, 1024, 1, 501, "") + pod("q", 1000, 1024, 1, 501, ""), nil, "8 2 2 2; 0 0"},
		{"a third and two halves: three of a half", eight,
			pod("p", 1, 1, 1, 500, "") + pod("q", 1, 1, 1, 500, "") + pod("r", 1, 1, 1, 300, ""), nil, "8 3 2 2; 0 0"},
		{"several whole GPUs beside", eight, pod("p", 1, 1, 4, 1000, "") + strings.Repeat(pod("q", 1, 1, 1, 250, ""), 4), nil, "8 8 5 5; 0 0"},
		{"models that are not alike do not share", ones, pod("p", 1, 1, 1, 500, "T4") + pod("q", 1, 1, 1, 500, "V100M16"), nil, "2 2 2 2; 0 0"},
		{"models of a list do", ones, pod("p", 1, 1, 1, 500, "T4") + pod("q", 1, 1, 1, 500, "V100M16|T4"), nil, "2 2 1 1; 0 0"},
		{"a model that is not there", ones, pod("p", 1, 1, 1, 500, "A10"), nil, "2 0 0 0; 1 1"},
		{"more GPUs than a node has", ones, pod("p", 1, 1, 2, 1000, ""), nil, "2 0 0 0; 1 1"},
		{"CPU that two do not have", ones, pod("p", 5000, 1, 1, 500, "") + pod("q", 5000, 1, 1, 500, ""), nil, "2 2 2 2; 0 0"},
		{"memory that two do not have", ones, pod("p", 1, 20000, 1, 500, "") + pod("q", 1, 20000, 1, 500, ""), nil, "2 2 2 2; 0 0"},
		{"pods that wait for a GPU and need not", ones, strings.Repeat(pod("p", 1000, 1024, 1, 500, ""), 4), nil, "2 4 2 2; 2 0"},
		{"a pod without a GPU that waits", ones, pod("p", 9000, 1, 0, 0, ""), nil, "2 0 0 0; 1 1"},
		{"no strategy but whole GPUs", eight, strings.Repeat(pod("p", 1, 1, 1, 500, ""), 4),
			[]string{"--strategies", "exclusive"}, "8 4 4 4; 0 0"},
		{"exact parts", eight, strings.Repeat(pod("p", 1, 1, 1, 600, "")+pod("q", 1, 1, 1, 400, ""), 2),
			[]string{"--strategies", "claim"}, "8 4 2 2; 0 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := planOf(t, append([]string{"--from", trace(t, c.nodes, c.pods)}, c.args...)...)
			got := fmt.Sprintf("%d %d %d %d; %d %d", d.Devices.Total, d.Devices.Today, d.Devices.Planned,
				d.Devices.LowerBound, d.Waiting.Before, d.Waiting.After)
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestPlanOfFewNodes: where no node is left for each form that pods could have, one form for all is better than none.
func TestPlanOfFewNodes(t *testing.T) {
	pods := strings.Repeat(pod("p", 1, 1, 1, 500, ""), 2) +
		strings.Repeat(pod("q", 1, 1, 1, 330, ""), 3) + strings.Repeat(pod("r", 1, 1, 1, 200, ""), 5)
	d := planOf(t, "--from", trace(t, "a,96000,393216,6,G2\n", pods))
	if got := fmt.Sprint(d.Devices.Planned, d.Waiting, d.Applied, d.Nodes[0].Replicas); got != "5 {4 0} true 2" || d.Devices.LowerBound > 4 ||
		!strings.Contains(strings.Join(d.Notes, ""), "this one divides every shared GPU into the same number of replicas") {
		t.Errorf("%s: %+v %q", got, d.Devices, d.Notes)
	}
}

// generated is a small trace. The same seed has the same trace.
func generated(t *testing.T, seed uint64) string {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	var nodes, pods strings.Builder
	for i := range 1 + random.IntN(12) {
		fmt.Fprintf(&nodes, "n%d,%d,%d,%d,%s\n", i, 4000*(1+random.IntN(24)), 16384*(1+random.IntN(16)),
			1<<random.IntN(4), []string{"T4", "G2", "V100"}[random.IntN(3)])
	}
	for i := range random.IntN(60) {
		devices, milli := 1, 50*(1+random.IntN(20))
		if random.IntN(4) == 0 {
			devices, milli = random.IntN(5), 1000
		}
		if devices == 0 {
			milli = 0
		}
		pods.WriteString(pod(fmt.Sprint("p", i), 500*random.IntN(24), 1024*random.IntN(48), devices, milli,
			[]string{"", "", "T4", "G2|V100", "V100", "none"}[random.IntN(6)]))
	}
	return trace(t, nodes.String(), pods.String())
}

// TestPlanProperties holds on any fleet: a bound is none above a plan, a plan none above today, and nobody waits who does not today.
func TestPlanProperties(t *testing.T) {
	for seed := range uint64(40) {
		from := generated(t, seed)
		for _, strategies := range []string{"exclusive", "time-slicing", "claim", "mps,claim"} {
			d := planOf(t, "--from", from, "--strategies", strategies)
			if v := d.Devices; v.LowerBound > v.Planned || v.Planned > v.Today || v.Planned < 0 ||
				d.Waiting.After > d.Waiting.Before || float64(v.LowerBound) < float64(v.Planned)/4 {
				t.Errorf("seed %d, %s: %+v %+v", seed, strategies, v, d.Waiting)
			}
			if w := d.Waste.Planned; math.Abs(w.Rounding+w.Stranded-d.Demand.Rounded) > 1e-6 || w.Rounding < 0 || w.Stranded < 0 ||
				d.Waste.Today.Rounding < 0 || d.Waste.Today.Stranded < 0 {
				t.Errorf("seed %d, %s: %g of devices do nothing: %+v", seed, strategies, d.Demand.Rounded, d.Waste)
			}
			needed, there := 0, 0
			for _, l := range d.Layouts {
				needed, there = needed+l.Devices, there+l.NodeDevices
			}
			nodes := 0
			for _, g := range d.Groups {
				if nodes += g.Most * g.Devices; g.Least != g.Most {
					t.Errorf("seed %d, %s: a trace has one moment: %+v", seed, strategies, g)
				}
			}
			if nodes < d.Devices.Planned {
				t.Errorf("seed %d, %s: groups of nodes have %d devices, of %+v", seed, strategies, nodes, d.Devices)
			}
			if needed != d.Devices.Planned || there != d.Devices.Total {
				t.Errorf("seed %d, %s: the layouts have %d and %d devices, of %+v", seed, strategies, needed, there, d.Devices)
			}
		}
	}
}

func TestPlanBadInput(t *testing.T) {
	good := pod("p", 1, 1, 1, 500, "")
	for _, c := range []struct{ name, nodes, pods, want string }{
		{"no number", "a,x,1,1,T4\n", good, `line 2: cpu_milli "x": accepted: an integer`},
		{"below zero", "a,1,1,-1,T4\n", good, `line 2: gpu "-1"`},
		{"too many GPUs", "a,1,1,65,T4\n", good, `line 2: gpu "65": accepted: an integer from 0 to 64`},
		{"a line that is too short", "a,1,1\n", good, "wrong number of fields"},
		{"a pod without a name", "a,1,1,1,T4\n", pod("", 1, 1, 1, 500, ""), "line 2: name is empty"},
		{"a node without a name", ",1,1,1,T4\n", good, "line 2: sn is empty"},
		{"a part of no GPU", "a,1,1,1,T4\n", pod("p", 1, 1, 0, 500, ""), "gpu_milli 500 with num_gpu 0"},
		{"nothing of a GPU", "a,1,1,1,T4\n", pod("p", 1, 1, 1, 0, ""), "gpu_milli 0 with num_gpu 1"},
		{"parts of several", "a,1,1,1,T4\n", pod("p", 1, 1, 2, 500, ""), "gpu_milli 500 with num_gpu 2"},
		{"more than a GPU", "a,1,1,1,T4\n", good + pod("q", 1, 1, 1, 1001, ""), `line 3: gpu_milli "1001"`},
		{"a quote that does not end", "a,1,1,1,\"T4\n", good, "line 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := command("--from", trace(t, c.nodes, c.pods))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q\n%s", err, c.want, out)
			}
		})
	}
}

// TestPlanPage: the page of a plan has each pod with GPUs twice, on a device that has room or among those that wait.
func TestPlanPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "plan.html")
	for seed := range uint64(12) {
		for _, strategies := range []string{"time-slicing", "mps,mig"} {
			d := planOf(t, "--from", generated(t, seed), "--strategies", strategies, "--page", page)
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			_, data, _ := strings.Cut(string(text), `id="data">`)
			data, _, _ = strings.Cut(data, "</script>")
			var views []struct {
				Title         string
				Nodes         []struct{ Extra []int }
				Pods, Waiting []any
				Sums          struct{ Devices int }
			}
			if err := json.Unmarshal([]byte(data), &views); err != nil || len(views) != 2 ||
				views[0].Title != "today" || views[1].Title != "planned" {
				t.Fatalf("%v: %d views", err, len(views))
			}
			for i, v := range views {
				if v.Sums.Devices != d.Devices.Total || len(v.Pods)+len(v.Waiting) != len(views[0].Pods)+len(views[0].Waiting) ||
					len(v.Waiting) > []int{d.Waiting.Before, d.Waiting.After}[i] {
					t.Errorf("seed %d, %s, %s: %d devices, %d pods, %d wait, of %+v %+v", seed, strategies, v.Title, v.Sums.Devices,
						len(v.Pods), len(v.Waiting), d.Devices, d.Waiting)
				}
				for _, n := range v.Nodes {
					if len(n.Extra) > 0 {
						t.Errorf("seed %d, %s, %s: a node has %d slices on no device", seed, strategies, v.Title, len(n.Extra))
					}
				}
			}
		}
	}
}

// TestPlanUnlikeNodes: nodes of which no two are alike, as their kernels reserve unlike amounts of memory, cost little more than others.
func TestPlanUnlikeNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	var nodes, pods strings.Builder
	for i := range 200 {
		fmt.Fprintf(&nodes, "n%d,96000,%d,8,%s\n", i, 393216-i, []string{"T4", "G2"}[i%2])
	}
	for range 2000 {
		pods.WriteString(pod("p", 500*random.IntN(12), 1024*random.IntN(32), 1, 50*(1+random.IntN(20)), []string{"", "T4", "G2"}[random.IntN(3)]))
	}
	from := trace(t, nodes.String(), pods.String())
	for _, strategies := range []string{"time-slicing", "claim", "mps,mig,claim"} {
		before := spent(t)
		d := planOf(t, "--from", from, "--strategies", strategies)
		cpu := spent(t) - before
		t.Logf("%s: %+v, %v of CPU time", strategies, d.Devices, cpu)
		const most = 20 * time.Second // the trace openb, four times as large, takes 1 s
		if cpu > most || d.Devices.Planned == 0 {
			t.Errorf("%s: %v of CPU time, at most %v", strategies, cpu, most)
		}
	}
}

// spent is the CPU time of this process.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestPlanNotApplied: where the layout found would have more pods wait, the answer begins with that.
func TestPlanNotApplied(t *testing.T) {
	d := document{Plan: &proposal.Plan{}}
	var b bytes.Buffer
	if err := pageOf(&d).Print(&b); err != nil || !strings.HasPrefix(b.String(), "No node changes") {
		t.Errorf("%v: %s", err, b.String())
	}
	from := trace(t, "a,8000,32768,1,T4\n", pod("p", 1, 1, 1, 500, ""))
	if d := planOf(t, "--from", from); !d.Applied || len(d.Notes) > 0 {
		t.Errorf("%+v", d.Plan)
	}
	if d := planOf(t, "--from", from, "--strategies", "mig"); !strings.Contains(fmt.Sprint(d.Notes), "no MIG instances are proposed") {
		t.Errorf("%q", d.Notes)
	}
}

// TestPlanWaste: each pod counts for one cause at most.
func TestPlanWaste(t *testing.T) {
	low, high := 0.1, 0.9
	f := &demand.Fleet{Units: map[string]int64{"whole": 1, "shared": 4}, Models: map[string]string{}}
	f.Kinds = []demand.Kind{{Model: "L4", Devices: 8, DeviceMemory: 20480, CPU: 1000,
		Memory: 1000, Offers: map[string]int64{"nvidia.com/gpu": 8}}}
	f.Add("a", 0)
	add := func(pool string, share int, use *demand.Use) {
		f.Pods = append(f.Pods, demand.Pod{Name: fmt.Sprint(len(f.Pods)), Devices: 1, Share: share, Pool: pool, Units: 1, Node: 1, Use: use})
	}
	add("whole", demand.Whole, nil)
	add("whole", demand.Whole, &demand.Use{Peak: 400})
	add("whole", demand.Whole, &demand.Use{Peak: 4000, Utilized: &low})
	add("whole", demand.Whole, &demand.Use{Peak: 4000, Utilized: &high})
	add("whole", demand.Whole, &demand.Use{Peak: 4000})
	add("whole", demand.Whole, &demand.Use{Peak: 15000, Utilized: &low})
	add("shared", 200, &demand.Use{Peak: 4000, Utilized: &low})
	p := proposal.Make(f, layout.Families{Replicas: []int{4}, Shared: layout.TimeSlicing})
	for what, pair := range map[string][2]float64{"rounding": {p.Waste.Today.Rounding, 0.05},
		"stranded": {p.Waste.Today.Stranded, 0.75}, "its memory": {p.Waste.Today.StrandedGiB, 15},
		"planned rounding": {p.Waste.Planned.Rounding, 0.05}, "planned stranded": {p.Waste.Planned.Stranded, 0.75}, "idle": {p.Waste.Idle, 1},
		"hardly used": {p.Waste.HardlyUsed, 1}, "unmeasured": {p.Waste.Unmeasured, 1}} {
		if math.Abs(pair[0]-pair[1]) > 1e-6 {
			t.Errorf("%s: %g, want %g", what, pair[0], pair[1])
		}
	}
}

// TestPlanCanceled: a plan of a fleet ends with its context.
func TestPlanCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := makePlan(ctx, &demand.Fleet{}, layout.Families{}); p != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", p, err)
	}
}

// TestPlanSharedNodes: pods of one form whose constraints differ share the nodes that are divided for them.
func TestPlanSharedNodes(t *testing.T) {
	d := planOf(t, "--from",
		trace(t, "a,8000,32768,4,T4\nb,8000,32768,4,T4\n", pod("p", 1, 1, 1, 500, "T4 | V100")+pod("q", 1, 1, 1, 500, "T4")))
	changed := 0
	for _, n := range d.Nodes {
		if n.Changed {
			changed += len(n.Names)
		}
	}
	if changed != 1 || d.Devices.Planned != 1 || d.Waiting.After != 0 {
		t.Errorf("%d nodes change: %+v", changed, d.Plan)
	}
}

func TestPlanCompressed(t *testing.T) {
	from := trace(t, "a,8000,8192,1,T4\n", pod("p", 1, 1, 1, 500, ""))
	for path := range strings.SplitSeq(strings.TrimPrefix(from, tracePrefix), ",") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(text)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d := planOf(t, "--from", from); d.Devices.Planned != 1 {
		t.Errorf("%+v", d.Devices)
	}
}

func TestPlanQuestions(t *testing.T) {
	from := trace(t, "a,96000,393216,8,G2\nb,96000,393216,8,G2\n", strings.Repeat(pod("p", 1, 1, 1, 250, ""), 8))
	for _, c := range []struct{ args, want string }{
		{"", "16 8 2"}, {"--what-if replicas=2", "16 8 4"}, {"--what-if replicas=2 --strategies exclusive", "16 8 4"},
		{"--what-if replicas=1", "16 8 8"}, {"--without b", "8 8 2"}, {"--add 4xG2", "24 8 2"}, {"--add 9xg2", "32 8 2"},
	} {
		d := planOf(t, append(strings.Fields(c.args), "--from", from)...)
		if got := fmt.Sprint(d.Devices.Total, d.Devices.Today, d.Devices.Planned); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
		for _, n := range d.Nodes {
			if n.Strategy == "" {
				t.Errorf("%s: nodes without a strategy: %+v", c.args, n)
			}
		}
	}
	for args, want := range map[string]string{
		"--what-if replicas=17": "replicas=1 to replicas=16", "--what-if speed": "accepted: replicas=N",
		"--without c": "--without c: no node", "--add 4xH100": "there are G2",
		"--strategies bogus": `--strategies "bogus": accepted`, "--strategies=": `--strategies "": accepted`,
		"--add G2": "such as 4xH100", "--sizes large": "accepted: requested, recommended, observed", "--peak min": "accepted: max, p95",
		"--price G2":     "MODEL=PRICE",
		"--price G2=NaN": "MODEL=PRICE", "--price G2=1,G2=2": "G2 has two prices",
		"--strategies mps,time-slicing": "one of time-slicing and mps",
		"--against x.yaml":              "is for --changes",
		"--samples x.csv":               "with --sizes recommended alone",
		"--what-if sizes=x":             "accepted: requested, recommended, observed",
	} {
		if _, err := command(append(strings.Fields(args), "--from", from)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	if d := planOf(t, "--from", from, "--price", "g2=2"); d.Cost == nil || d.Cost.Today != 16 || d.Cost.Freed != 12 {
		t.Errorf("%+v", d.Cost)
	}
	if d := planOf(t, "--from", from, "--price", "h100=2"); d.Cost != nil || !strings.Contains(fmt.Sprint(d.Notes), "no price: model G2") {
		t.Errorf("%+v %v", d.Cost, d.Notes)
	}
}

// TestPlanSamples: pods on whole GPUs share one by what their workload used in a file of samples.
func TestPlanSamples(t *testing.T) {
	dir := t.TempDir()
	f := inventory.New(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	f.Pools = []inventory.Pool{{Name: "whole", Resource: "nvidia.com/gpu", Strategy: "exclusive",
		Product: "NVIDIA-L4", DeviceMemory: 23034, Replicas: 1, Share: 1}}
	f.Nodes = []inventory.Node{{Name: "a", GPUs: inventory.GPUs{Product: "NVIDIA-L4", Count: 4, Memory: 23034},
		Allocatable: inventory.Resources{"nvidia.com/gpu": 4, "cpu": 16000, "memory": 64 << 30, "pods": 110},
		Offers:      []inventory.Offer{{Pool: "whole", Units: 4}}}}
	samples := "seconds,memory_mib,namespace,pod,container\n"
	for i, name := range []string{"train-7c9fd", "train-x2k4z", "serve-0", "alone"} {
		f.Pods = append(f.Pods,
			inventory.Pod{Namespace: "team", Name: name, Node: "a", Phase: corev1.PodRunning, Requests: inventory.Resources{"nvidia.com/gpu": 1}})
		for hour := range 8 {
			if i < 3 {
				samples += fmt.Sprintf("%d,%d,team,%s,main\n", 1_700_000_000+3600*hour, 1000+200*hour, name)
			}
		}
	}
	from, csv := filepath.Join(dir, "fleet.json.gz"), filepath.Join(dir, "samples.csv")
	var b bytes.Buffer
	if err := errors.Join(inventory.Write(&b, f), os.WriteFile(from, b.Bytes(), 0o600),
		os.WriteFile(csv, []byte(samples), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, question := range []string{"--sizes recommended", "--what-if sizes=recommended"} {
		d := planOf(t, append(strings.Fields(question), "--from", from, "--samples", csv)...)
		if d.Devices.Today != 4 || d.Devices.Planned != 2 || d.Demand.Parts != 3 ||
			!strings.Contains(fmt.Sprint(d.Notes), "1 pods that need one GPU or less have no recommended size") {
			t.Errorf("%s: %+v %+v %q", question, d.Devices, d.Demand, d.Notes)
		}
	}
	if _, err := command("--sizes", "recommended", "--from", from, "--samples", from); err == nil ||
		!strings.Contains(err.Error(), "--samples ") {
		t.Errorf("a file without samples: %v", err)
	}
}

// TestPlanChanges holds the files to the parsers that doctor has of NVIDIA's.
func TestPlanChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "changes")
	from := trace(t, "a,96000,393216,8,G2\nb,96000,393216,8,G2\n", strings.Repeat(pod("p", 1, 1, 1, 250, ""), 8))
	planOf(t, "--from", from, "--changes", dir)
	text, err := os.ReadFile(filepath.Join(dir, "device-plugin-configs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &m); err != nil || len(m.Data) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	for name, config := range m.Data {
		c, unknown, err := nvidia.ParsePluginConfig(config)
		if err != nil || len(unknown) > 0 || name != "time-slicing-4" || c.Sharing.TimeSlicing.Resources[0].Replicas != 4 {
			t.Errorf("%s: %v %v\n%s", name, err, unknown, config)
		}
	}
	script, err := os.ReadFile(filepath.Join(dir, "rollout.sh"))
	if err != nil || strings.Count(string(script), "kubectl label node") != 1 ||
		!strings.Contains(string(script), "nvidia.com/device-plugin.config=time-slicing-4") {
		t.Errorf("%v: %s", err, script)
	}
}

// TestPlanMIGInstances: nodes that have the MIG instances of the plan do not change, and others do. A fleet with MIG is planned with it.
func TestPlanMIGInstances(t *testing.T) {
	for _, c := range []struct {
		pods    int
		memory  int64
		changed bool
	}{{7, 9000, false}, {6, 9000, false}, {1, 30000, true}} {
		f := &demand.Fleet{Kinds: []demand.Kind{{Model: "NVIDIA-A100-SXM4-80GB", Devices: 1, DeviceMemory: 81920,
			MIG: true, CPU: 1000, Memory: 1000, Strategy: layout.MIG,
			Offers: map[string]int64{"nvidia.com/mig-1g.10gb": 7}}}}
		f.Add("a", 0)
		for range c.pods {
			f.Pods = append(f.Pods,
				demand.Pod{Devices: 1, Share: 1, DeviceMemory: c.memory, Isolated: true, Requests: map[string]int64{"nvidia.com/mig-1g.10gb": 1}})
		}
		if p := proposal.Make(f, layout.Default(f)); len(p.Nodes) != 1 || p.Nodes[0].Changed != c.changed {
			t.Errorf("%d pods of %d MiB: %+v", c.pods, c.memory, p.Nodes)
		}
	}
}

func TestChangesOfMIG(t *testing.T) {
	f := &demand.Fleet{Kinds: []demand.Kind{{Strategy: layout.MIG}}, Nodes: []demand.Node{{Name: "a", Running: 1}, {Name: "b"}}}
	p := &proposal.Plan{Next: &layout.Assignment{}, Nodes: []proposal.Nodes{
		{Strategy: layout.MIG, Devices: 4, Changed: true, Names: []string{"a", "b"}, Profiles: []map[string]int{{"1g.10gb": 7}}},
	}}
	files, err := changesOf(f, p, newObjects("gpuslice-system"))
	if err != nil {
		t.Fatal(err)
	}
	var m corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(files["mig-parted-config.yaml"]), &m); err != nil {
		t.Fatal(err)
	}
	c, err := nvidia.ParseMIGConfig(m.Data["config.yaml"])
	if err != nil || len(c.Layouts["plan-1"]) != 2 {
		t.Errorf("%v: %s", err, m.Data)
	}
	if script := files["rollout.sh"]; !strings.Contains(script, "\nkubectl label node b") || !strings.Contains(script, "# kubectl cordon a ") {
		t.Error(script)
	}
	whole := &proposal.Plan{Next: &layout.Assignment{},
		Nodes: []proposal.Nodes{{Strategy: layout.Exclusive, Devices: 4, Changed: true, Names: []string{"a", "b"}}}}
	if files, err := changesOf(f, whole, newObjects("gpuslice-system")); err != nil ||
		!strings.Contains(files["mig-parted-config.yaml"], "mig-enabled: false") || !strings.Contains(files["rollout.sh"], "mig.config=plan-1") {
		t.Errorf("nodes that leave MIG: %v\n%v", err, files)
	}
	f.Nodes[1] = demand.Node{Name: "b; reboot"}
	p.Nodes[0].Names[1] = "b; reboot"
	if _, err := changesOf(f, p, newObjects("gpuslice-system")); err == nil || !strings.Contains(err.Error(), `node "b; reboot"`) {
		t.Errorf("a name that a shell would run: %v", err)
	}
	f.Nodes[1].Added = true
	if files, err := changesOf(f, p, newObjects("gpuslice-system")); err != nil || strings.Contains(files["rollout.sh"], "reboot") {
		t.Errorf("a node that is not there: %v\n%s", err, files["rollout.sh"])
	}
}

package observability

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/report"
)

// measuredDevices are series of three nodes, of which OpenCost has prices of two, of one for the second half of the day; and of a guard
// whose pod lies.
func measuredDevices() (all []metric) {
	add := func(name, labels string, at func(float64) (float64, bool)) {
		all = append(all, metric{name, labels, at})
	}
	container := func(by, namespace, node string, slice, used float64, from, to float64, devices ...string) {
		of := fmt.Sprintf(`namespace=%q,pod="p",container="main",node=%q`, namespace, node)
		add("gpuslice_"+by+"_memory_slice_bytes", of, between(from, to, constant(slice*gib)))
		for _, d := range devices {
			on := fmt.Sprintf(`%s,device=%q`, of, d)
			add("gpuslice_"+by+"_memory_peak_bytes", on, between(from, to, constant(used*gib)))
			add("gpuslice_"+by+"_memory_used_bytes", on, between(from, to, constant(used*gib)))
		}
	}
	for _, d := range []string{"GPU-1", "GPU-2"} {
		add("gpuslice_agent_device_memory_bytes", fmt.Sprintf(`node="n1",model="NVIDIA A100-SXM4-80GB",device=%q`, d), always(constant(80*gib)))
	}
	container("agent", "a", "n1", 20, 10, 0, math.Inf(1), "GPU-1")
	container("agent", "b", "n1", 40, 8, 24, 46, "GPU-1", "GPU-2")
	seen := func(node string, from, to float64) {
		add("gpuslice_agent_device_memory_bytes",
			fmt.Sprintf(`node=%q,model="NVIDIA L4",device="GPU-1"`, node), between(from, to, constant(24*gib)))
	}
	priced := func(node string, from, count float64) {
		of := fmt.Sprintf(`instance=%q,node=%q,job="opencost"`, node, node)
		add("node_gpu_hourly_cost", of, between(from, math.Inf(1), constant(0.70)))
		add("node_gpu_count", of, between(from, math.Inf(1), constant(count)))
	}
	seen("n2", 0, 40)
	container("agent", "c", "n2", 6, 6, 0, 40, "GPU-1")
	priced("n2", 0, 1)
	seen("n3", 0, math.Inf(1))
	container("agent", "d", "n3", 12, 12, 0, 46, "GPU-1")
	container("agent", "e", "n3", 6, 6, 0, math.Inf(1), "GPU-1")
	priced("n3", 46, 2)
	// A pod's own: a larger GPU than the agent reports, another one, and a slice of a GPU that it does not use.
	for _, d := range []string{"GPU-1", "GPU-0"} {
		add("gpuslice_guard_device_memory_bytes",
			fmt.Sprintf(`namespace="liar",pod="p",node="n1",model="NVIDIA A100-SXM4-80GB",device=%q`, d), always(constant(1e18)))
	}
	container("guard", "liar", "n1", 80, 80, 0, math.Inf(1), "GPU-1", "GPU-0")
	return all
}

// TestReportDevices divides what GPUs cost on a day by what a real Prometheus knows.
func TestReportDevices(t *testing.T) {
	t.Parallel()
	t.Run("with a real Prometheus", func(t *testing.T) {
		t.Parallel()
		bin := programs(t)
		data := backfill(t, bin["promtool"], measuredDevices(), fleetEnd)
		fewer := copyOf(t, data)
		for name, flags := range map[string][]string{"whole days": {"--storage.tsdb.path=" + data},
			"few samples": {"--storage.tsdb.path=" + fewer, "--query.max-samples=3000"}} {
			p := startPrometheus(t, bin["prometheus"], "{}", append(flags, "--storage.tsdb.retention.time=100d")...)
			p.ready()
			got, err := costs(t, "http://"+p.address)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := map[string]float64{
				"nodes/n1/devices/GPU-1 a used": 7.20, "nodes/n1/devices/GPU-1 a unused": 7.20, "nodes/n1/devices/GPU-1 b used": 2.88,
				"nodes/n1/devices/GPU-1 b unused": 11.52, "nodes/n1/devices/GPU-1  idle": 28.80,
				"nodes/n1/devices/GPU-2 b used": 2.88, "nodes/n1/devices/GPU-2 b unused": 11.52, "nodes/n1/devices/GPU-2  idle": 43.20,
				"nodes/n2/devices/GPU-1 c used": 1.05, "nodes/n2/devices/GPU-1  idle": 3.15, "nodes/n2/unseen  unread": 12.60,
				"nodes/n3/devices/GPU-1 e used": 2.10, "nodes/n3/devices/GPU-1  idle": 6.30, "nodes/n3/unseen  unread": 8.40,
			}
			for row, cost := range want {
				if math.Abs(got[row]-cost) > 1e-5 {
					t.Errorf("%s: %s costs %.6f, want %.2f", name, row, got[row], cost)
				}
			}
			for row, cost := range got {
				if _, known := want[row]; !known && cost > 1e-5 {
					t.Errorf("%s: %s costs %.6f", name, row, cost)
				}
			}
		}
	})
}

// costs runs the command, and returns what its rows cost by resource, namespace and share.
func costs(t *testing.T, address string) (map[string]float64, error) {
	t.Helper()
	charges := filepath.Join(t.TempDir(), "charges.yaml")
	if err := os.WriteFile(charges,
		[]byte("provider: a\naccount: b\ncurrency: EUR\nprices: opencost\ndevices: [{pool: a100, count: 2, price: 2.40}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" },
		Now: func() time.Time { return fleetEnd }}
	cmd := report.New(s)
	cmd.SetArgs([]string{"--since", "2026-09-20", "--until", "2026-09-21", "-o", "focus", "--by", "device",
		"--used", "--charges", charges, "--prometheus", address})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return nil, err
	}
	if notes := errs.String(); notes != "2026-09: no charge: OpenCost had no price for 12.00 device-hours in which devices were seen, of node n3\n" {
		t.Errorf("notes: %s", notes)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	all := map[string]float64{}
	for _, line := range lines[1:] {
		of := func(name string) string { return line[column[name]] }
		cost, err := strconv.ParseFloat(of("BilledCost"), 64)
		if err != nil {
			return nil, err
		}
		all[strings.TrimPrefix(of("ResourceId"), "gpuslice/")+" "+of("AllocatedResourceName")+" "+of("x_GpusliceShare")] += cost
	}
	return all, nil
}

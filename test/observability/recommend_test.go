package observability

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/recommend"
)

// span is what the history of the fleet covers, at a sample each sampleStep.
const (
	span       = 3 * 24 * time.Hour
	sampleStep = 5 * time.Minute
)

// fleetEnd is when recommend runs. The hour is not over.
var fleetEnd = time.Unix(1_790_000_000, 0).Truncate(time.Hour).Add(40 * time.Minute)

// metric is a series: its name and labels as OpenMetrics has them, and its value a number of hours after the beginning, if it has one.
type metric struct {
	name, labels string
	at           func(hours float64) (value float64, ok bool)
}

const gib = 1 << 30

// between is a part of a series.
func between(from, to float64, at func(hours float64) float64) func(float64) (float64, bool) {
	return func(h float64) (float64, bool) { return at(h), h >= from && h < to }
}

func always(at func(hours float64) float64) func(float64) (float64, bool) {
	return between(0, math.Inf(1), at)
}

func constant(value float64) func(float64) float64 { return func(float64) float64 { return value } }

// wave is a use that goes up and down within a day.
func wave(low, high float64) func(float64) float64 {
	return func(h float64) float64 { return math.Floor(low + (high-low)*(1+math.Sin(h/4))/2) }
}

// agentOf are labels of a container as a Prometheus has them that keeps its own.
func agentOf(namespace, pod string) string {
	return fmt.Sprintf(
		`namespace="gpuslice-system",pod="agent-x2x2x",exported_namespace=%q,exported_pod=%q,exported_container="main",device="GPU-1",node="n1"`,
		namespace, pod)
}

func dcgmOf(pod, device, instance string) string {
	return fmt.Sprintf(`namespace="team-c",pod=%q,container="main",Hostname="n1",UUID=%q,gpu="0",instance=%q`, pod, device, instance)
}

// recordedFleet are the series of agents, guards, engines and DCGM exporter, with what happens to series.
func recordedFleet() (all []metric) {
	add := func(name, labels string, at func(float64) (float64, bool)) {
		all = append(all, metric{name, labels, at})
	}
	agent := func(pod string, slice float64, at func(float64) (float64, bool)) {
		add("gpuslice_agent_memory_used_bytes", agentOf("team-a", pod), at)
		add("gpuslice_agent_memory_slice_bytes", agentOf("team-a", pod), func(h float64) (float64, bool) { _, ok := at(h); return slice, ok })
	}
	for i := range 24 {
		agent(fmt.Sprintf("web%d-7f9c6d5b4-bbcdf", i), 24*gib, always(wave(4*gib, float64(6+i%5)*gib)))
	}
	// A rollout: pods that no longer exist.
	agent("rolled-7f9c6d5b4-bbcdf", 16*gib, between(0, 40, wave(3*gib, 5*gib)))
	agent("rolled-5d8c7b6f9-fghjk", 16*gib, between(40, 99, wave(3*gib, 6*gib)))
	agent("gone-7f9c6d5b4-bbcdf", 16*gib, between(0, 30, wave(3*gib, 5*gib)))
	agent("gap-7f9c6d5b4-bbcdf", 16*gib, func(h float64) (float64, bool) { return wave(3*gib, 5*gib)(h), h < 20 || h >= 32 })
	agent("nan-7f9c6d5b4-bbcdf", 16*gib, always(func(h float64) float64 {
		if int(h*12)%3 == 0 {
			return math.NaN()
		}
		return wave(3*gib, 5*gib)(h)
	}))
	// A peak between two samples of a container's first hour.
	agent("spike-7f9c6d5b4-bbcdf", 16*gib, between(20, 99, wave(3*gib, 5*gib)))
	add("gpuslice_agent_memory_peak_bytes", agentOf("team-a", "spike-7f9c6d5b4-bbcdf"), between(20, 99, constant(9*gib)))
	// Counters: resets, one that appears, one between two hours, and attempts without a result.
	agent("failing-7f9c6d5b4-bbcdf", 16*gib, always(wave(3*gib, 5*gib)))
	failing := agentOf("team-a", "failing-7f9c6d5b4-bbcdf")
	add("gpuslice_agent_warnings_total", failing, between(10, 99, func(h float64) float64 {
		switch {
		case h < 20:
			return 2
		case h < 30:
			return 7
		default: // the agent started again at 30
			return math.Min(math.Floor(h-30), 3)
		}
	}))
	add("gpuslice_agent_terminations_total", failing+`,result="terminated"`, always(func(h float64) float64 { return math.Floor(h / 25) }))
	add("gpuslice_agent_terminations_total", failing+`,result="dry-run"`, always(func(h float64) float64 { return math.Floor(h) }))
	// An agent and a guard of one container, and a vLLM that serves both names of a metric.
	agent("both-7f9c6d5b4-bbcdf", 16*gib, always(wave(3*gib, 5*gib)))
	add("gpuslice_guard_memory_used_bytes", agentOf("team-a", "both-7f9c6d5b4-bbcdf"), always(wave(3*gib, 5*gib)))
	agent("engine-7f9c6d5b4-bbcdf", 20*gib, always(constant(18*gib)))
	for _, name := range []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"} {
		add(name, `namespace="team-a",pod="engine-7f9c6d5b4-bbcdf",model_name="m"`,
			always(func(h float64) float64 { return 0.25 + math.Floor(math.Min(h, 50))/100 }))
	}
	// DCGM: two exporters for one device, a device that two pods share, and one without a pod.
	for _, instance := range []string{"10.0.0.1:9400", "10.0.0.2:9400"} {
		add("DCGM_FI_DEV_FB_USED", dcgmOf("train-0", "GPU-7", instance), always(func(h float64) float64 { return wave(20_000, 30_000)(h) }))
		add("DCGM_FI_DEV_FB_FREE", dcgmOf("train-0", "GPU-7", instance),
			always(func(h float64) float64 { return 80_000 - wave(20_000, 30_000)(h) }))
	}
	for _, pod := range []string{"shared-0", "beside-0"} {
		add("DCGM_FI_DEV_FB_USED", dcgmOf(pod, "GPU-8", "10.0.0.1:9400"), always(constant(30_000)))
	}
	add("DCGM_FI_DEV_FB_USED",
		strings.ReplaceAll(dcgmOf("nvidia-dcgm-exporter-x2x2x", "GPU-9", "10.0.0.1:9400"), "team-c", "gpu-operator"), always(constant(0)))
	// kube-state-metrics: a container that the kernel killed, and the owners of pods.
	agent("killed-bbcdf", 16*gib, always(wave(3*gib, 5*gib)))
	state := `namespace="team-a",pod="killed-bbcdf"`
	add("kube_pod_container_status_last_terminated_reason", state+`,container="main",reason="OOMKilled"`, between(30, 99, constant(1)))
	add("kube_pod_container_status_last_terminated_reason",
		`namespace="team-a",pod="web0-7f9c6d5b4-bbcdf",container="main",reason="Error"`, between(30, 99, constant(1)))
	add("kube_pod_owner", state+`,owner_kind="DaemonSet",owner_name="killed"`, always(constant(1)))
	return all
}

// beginning is that of the history. What begins and ends some hours later does so at a full hour.
func beginning(end time.Time) time.Time { return end.Add(-span).Truncate(time.Hour) }

// samples calls what for the samples of a series in their order.
func (m metric) samples(end time.Time, what func(seconds int64, value float64)) {
	for t := beginning(end); t.Before(end); t = t.Add(sampleStep) {
		if value, ok := m.at(t.Sub(beginning(end)).Hours()); ok {
			what(t.Unix(), value)
		}
	}
}

// backfill makes the data of a Prometheus, whose history ends at a time.
func backfill(t *testing.T, promtool string, all []metric, end time.Time) (data string) {
	t.Helper()
	folder := t.TempDir()
	var text bytes.Buffer
	for _, m := range all {
		m.samples(end, func(seconds int64, value float64) {
			fmt.Fprintf(&text, "%s{%s} %g %d\n", m.name, m.labels, value, seconds)
		})
	}
	text.WriteString("# EOF\n")
	path := filepath.Join(folder, "metrics")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return createBlocks(t, promtool, path)
}

func createBlocks(t *testing.T, promtool, path string) (data string) {
	t.Helper()
	data = filepath.Join(filepath.Dir(path), "data")
	out, err := exec.CommandContext(t.Context(), promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet",
		"--max-block-duration=48h", path, data).CombinedOutput()
	if err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	return data
}

// rangeAnswer writes the same samples as the answer to a range query of each metric.
func rangeAnswer(t *testing.T, all []metric) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "range.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, m := range all {
		labels := `"` + strings.NewReplacer(`="`, `":"`, `",`, `","`).Replace(m.labels)
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":%q,%s},"values":[`, m.name, labels)
		comma := ""
		m.samples(fleetEnd, func(seconds int64, value float64) {
			fmt.Fprintf(w, `%s[%d,"%g"]`, comma, seconds, value)
			comma = ","
		})
		fmt.Fprintln(w, `]}]}}`)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs the command at a time, and returns what it prints.
func run(ctx context.Context, at time.Time, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" },
		Now: func() time.Time { return at }}
	cmd := recommend.New(s)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(ctx)
	return out.Bytes(), err
}

// recommended runs the command at fleetEnd.
func recommended(ctx context.Context, args ...string) (items map[string]map[string]any, err error) {
	out, err := run(ctx, fleetEnd, append(args, "-o", "json")...)
	if err != nil {
		return nil, err
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, err
	}
	items = map[string]map[string]any{}
	for _, i := range list.Items {
		items[i["workload"].(string)] = i
	}
	return items, nil
}

// TestRecommend reads the history of a fleet from a real Prometheus, and compares with the same samples from a file.
func TestRecommend(t *testing.T) {
	t.Parallel()
	t.Run("reads a real Prometheus", func(t *testing.T) {
		t.Parallel()
		bin := programs(t)
		all := recordedFleet()
		data := backfill(t, bin["promtool"], all, fleetEnd)
		copies := []string{copyOf(t, data), copyOf(t, data)}
		p := startPrometheus(t, bin["prometheus"], "{}", "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=100d")
		p.ready()
		want, err := recommended(t.Context(), "--from", rangeAnswer(t, all))
		if err != nil {
			t.Fatal(err)
		}
		got, err := recommended(t.Context(), "--prometheus", "http://"+p.address, "--since", "3d")
		if err != nil {
			t.Fatal(err)
		}
		compareItems(t, got, want)
		checkFleet(t, got)
		t.Run("behind a login", func(t *testing.T) { behindLogin(t, p.address, got) })
		t.Run("that is canceled", func(t *testing.T) { canceled(t, p.address) })
		few := startPrometheus(t, bin["prometheus"], "{}", "--storage.tsdb.path="+copies[0],
			"--storage.tsdb.retention.time=100d", "--query.max-samples=300")
		few.ready()
		t.Run("with few samples", func(t *testing.T) {
			again, err := recommended(t.Context(), "--prometheus", "http://"+few.address, "--since", "3d")
			if err != nil {
				t.Fatal(err)
			}
			compareItems(t, again, got)
		})
		failing(t, bin["prometheus"], copies[1])
	})
}

// failing runs the command on a Prometheus that cannot answer, or is away.
func failing(t *testing.T, program, data string) {
	t.Helper()
	least := startPrometheus(t, program, "{}", "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=100d", "--query.max-samples=10")
	least.ready()
	// A fast machine answers within any longer timeout, since there is nothing to read. It ends in the queue or after it.
	slow := startPrometheus(t, program, "{}", "--storage.tsdb.path="+t.TempDir(), "--query.timeout=0s")
	slow.ready()
	for _, c := range []struct{ name, address, want string }{
		{"too many samples", least.address, "422 Unprocessable Entity: query processing would load too many samples"},
		{"slow", slow.address, "query timed out|context deadline exceeded"},
		{"away", "127.0.0.1:1", "connection refused; is it running"},
		{"not Prometheus' API", least.address + "/graph", "is it the address of Prometheus?"},
	} {
		if _, err := recommended(t.Context(), "--prometheus", "http://"+c.address, "--since", "3d"); err == nil ||
			!slices.ContainsFunc(strings.Split(c.want, "|"), func(want string) bool { return strings.Contains(err.Error(), want) }) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		} else {
			t.Log(err)
		}
	}
}

// compareItems compares all but what a server that answers by the hour cannot have: how much of an hour was observed.
func compareItems(t *testing.T, got, want map[string]map[string]any) {
	t.Helper()
	for name, w := range want {
		g := got[name]
		if g == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if hours := g["hours"].(float64) - w["hours"].(float64); math.Abs(hours) > 3 {
			t.Errorf("%s has %g hours more", name, hours)
		}
		for _, field := range []string{"namespace", "kind", "container", "pods", "peak", "slice", "device", "verdict", "marks", "size",
			"coverage", "holdsForHours", "basis", "events", "engineCacheUse"} {
			if !reflect.DeepEqual(g[field], w[field]) {
				t.Errorf("%s: %s is %v, and %v of the other source", name, field, g[field], w[field])
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d workloads, and %d of the other source", len(got), len(want))
	}
}

// checkFleet checks what is known of the fleet.
func checkFleet(t *testing.T, got map[string]map[string]any) {
	t.Helper()
	for name, want := range map[string]string{
		"web0": "over-requested", "killed": "at-risk", "failing": "at-risk", "engine": "takes-what-is-given",
		"shared": "unknown", "beside": "unknown", "train": "over-requested",
	} {
		if got[name]["verdict"] != want {
			t.Errorf("%s is %v, want %s", name, got[name], want)
		}
	}
	for _, c := range []struct {
		workload, field string
		want            any
	}{
		{"failing", "events", map[string]any{"nearLimit": 10.0, "terminated": 2.0}}, {"engine", "engineCacheUse", 0.75}, {"spike", "peak", "9Gi"},
		{"killed", "kind", "DaemonSet"}, {"gone", "pods", 0.0}, {"train", "device", "80000Mi"}, {"rolled", "pods", 1.0},
	} {
		if !reflect.DeepEqual(got[c.workload][c.field], c.want) {
			t.Errorf("%s: %s is %v, want %v", c.workload, c.field, got[c.workload][c.field], c.want)
		}
	}
}

// behindLogin reads it through a proxy with TLS that wants a token.
func behindLogin(t *testing.T, address string, want map[string]map[string]any) {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority := file("ca", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	token, wrong := file("token", []byte("secret\n")), file("wrong", []byte("other"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--prometheus-ca"},
		{[]string{"--prometheus-ca", authority}, "401 Unauthorized: no; it wants a login"},
		{[]string{"--prometheus-ca", authority, "--prometheus-token-file", wrong}, "401 Unauthorized: no; it wants a login"},
		{[]string{"--prometheus-ca", token}, "no PEM certificate"},
	} {
		if _, err := recommended(t.Context(), append(c.args, "--prometheus", server.URL)...); err == nil ||
			!slices.ContainsFunc(strings.Split(c.want, "|"), func(want string) bool { return strings.Contains(err.Error(), want) }) {
			t.Errorf("%v: error %v, want %q", c.args, err, c.want)
		} else {
			t.Log(err)
		}
	}
	got, err := recommended(t.Context(), "--prometheus", server.URL, "--prometheus-ca", authority,
		"--prometheus-token-file", token, "--since", "3d")
	if err != nil {
		t.Fatal(err)
	}
	compareItems(t, got, want)
}

// canceled ends the command, as Ctrl-C does, while it waits for an answer.
func canceled(t *testing.T, address string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	ended := make(chan struct{}, 1)
	var n int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n < 3 {
			proxy.ServeHTTP(w, r)
			return
		}
		cancel()
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	t.Cleanup(server.Close)
	if _, err := recommended(ctx, "--prometheus", server.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-ended
}

func copyOf(t *testing.T, folder string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return to
}

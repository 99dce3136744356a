package recommend

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/history"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
	"github.com/gpuslice/gpuslice/policies/api"
)

// now is when the command runs.
var testNow = time.Unix(1_790_000_000, 0)

// month is a CSV with 40 Deployments in a namespace that grew by up to a fifth in the last of four weeks, and some that are special.
func month(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("namespace,pod,container,seconds,memory_mib,slice_mib\n")
	r := rand.New(rand.NewPCG(1, 1))
	const hours = 28 * 24
	began := float64(testNow.Unix()) - hours*3600
	add := func(namespace, pod string, slice, from int, mib func(hour int) float64) {
		for h := from; h < hours; h++ {
			fmt.Fprintf(&b, "%s,%s,main,%.0f,%.0f,%d\n", namespace, pod, began+float64(h)*3600, mib(h), slice)
		}
	}
	for i := range 40 {
		base := 4000 + 300*float64(i)
		add("team-a", fmt.Sprintf("web%d-7f9c6d5b4-bbcdf", i), 24*1024, 0, func(h int) float64 {
			if h > 21*24 {
				return base * (1 + float64(i%20)/100) * (0.95 + 0.05*r.Float64())
			}
			return base * (0.95 + 0.05*r.Float64())
		})
	}
	add("team-b", "train-0", 16*1024, 0, func(h int) float64 { return 4000 + float64(h)*12 })
	add("team-b", "engine-0", 20*1024, 0, func(int) float64 { return 18 * 1024 })
	add("team-b", "notebook", 8*1024, 0, func(int) float64 { return 300 })
	add("team-b", "nightly-29384756-bbcdf", 40*1024, hours-4, func(int) float64 { return 9000 })
	path := filepath.Join(t.TempDir(), "month.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// execute runs the command, and returns what it printed.
func execute(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs strings.Builder
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" },
		Now: func() time.Time { return testNow }}
	cmd := New(s)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func TestRecommendFromFiles(t *testing.T) {
	path := month(t)
	stdout, _, err := execute(t, "--from", path, "-o", "json", "--price", "2", "--device-memory", "80Gi")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []item }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]item{}
	for n, i := range list.Items {
		if found[i.Workload] = i; n > 0 && i.saves() > list.Items[n-1].saves() {
			t.Errorf("%s saves more than the workload before it", i.Workload)
		}
	}
	for name, want := range map[string]string{"web0": "over-requested", "train": "at-risk", "engine": "takes-what-is-given",
		"notebook": "idle", "nightly": "not-enough-history"} {
		if i := found[name]; string(i.Verdict) != want {
			t.Errorf("%s: %s, want %s: %+v", name, i.Verdict, want, i)
		}
	}
	web := found["web0"]
	if web.Size < web.Peak || web.Size > web.Peak*13/10 || web.saves() != (24*1024-web.Size).Bytes() || web.Basis.Group != "team-a" ||
		web.HoldsFor != 168 || web.SavesCost == nil || *web.SavesCost <= 0 {
		t.Errorf("web0: %+v", web)
	}
	if nightly := found["nightly"]; nightly.MoreHours != 2 || nightly.Size != 0 {
		t.Errorf("nightly: %+v", nightly)
	}
}

func TestRecommendOutput(t *testing.T) {
	path := month(t)
	for _, c := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"web0", "web1"}, "over-requested", "sizes at 95% for the next 7d, from 40 workloads of namespace team-a (workloads: 2)"},
		{[]string{"-n", "team-b"}, "takes-what-is-given", "gpuslice estimate"},
		{[]string{"-n", "team-a", "web0", "-o", "patch"},
			"kind: Deployment\nmetadata:\n  name: web0\n  namespace: team-a\nspec:\n  template:\n    metadata:\n      labels:\n        gpuslice.dev/memory: ", ""},
		{[]string{"web0", "-o", "csv"}, "\nteam-a,web0,Deployment,main,1,672,", ""},
		{[]string{"web0", "-o", "yaml"}, "kind: SizeRecommendationList", ""},
		{[]string{"--coverage", "99", "web0"}, "unknown", "99% needs 99 workloads"},
		{[]string{"--period", "80d", "web0"}, "web0", "for the next 20d"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			stdout, stderr, err := execute(t, append(c.args, "--from", path)...)
			if err != nil || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("error %v\n%s\n%s", err, stdout, stderr)
			}
		})
	}
}

func TestRecommendErrors(t *testing.T) {
	path := month(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--coverage", "20"}, "50 to 99.9"},
		{[]string{"--price", "-1"}, "price of a GPU"},
		{[]string{"--period", "1y"}, "1h to 90d"},
		{[]string{"--period", "999999999w"}, "1h to 90d"},
		{[]string{"--device-memory", "much"}, "--device-memory"},
		{[]string{"--from", path, "--prometheus", "http://x"}, "name one of them"},
		{[]string{"--prometheus-ca", "x"}, "for a URL"},
		{[]string{"--from", path, "nobody"}, "none of the 44 workloads"},
		{[]string{"--from", path + "x"}, "no such file"},
		{[]string{"--from", path, "-o", "wide"}, "accepted"},
		{[]string{"--model", "x"}, "gpuslice estimate DIRECTORY"},
		{[]string{"--engine", "vllm", "--model", "x"}, "gpuslice estimate DIRECTORY"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			if _, _, err := execute(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestRecommendFromPrometheus reads a server's API as it answers, and as it fails.
func TestRecommendFromPrometheus(t *testing.T) {
	answer := func(series string) string {
		return `{"status":"success","data":{"resultType":"matrix","result":[` + series + `]}}`
	}
	for _, c := range []struct {
		name   string
		serve  http.HandlerFunc
		stdout string
		err    string
	}{
		{"samples", func(w http.ResponseWriter, r *http.Request) {
			at := r.URL.Query().Get("start")
			if !strings.Contains(r.URL.Query().Get("query"), "memory_used_bytes") {
				fmt.Fprint(w, answer(""))
				return
			}
			fmt.Fprint(w, answer(`{"metric":{"namespace":"a","pod":"web-7f9c6d5b4-bbcdf","container":"main"},"values":[[`+at+`,"8589934592"]]}`))
		}, "web", ""},
		{"nothing", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer("")) }, "", "no samples"},
		{"login", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "", "wants a login"},
		{"login page", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "", "wants a login"},
		{"bad query", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"status":"error","error":"query processing would load too many samples"}`)
		}, "", "too many samples"},
		{"another server", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) },
			"", "is it the address of Prometheus?"},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer("")[:40]) }, "", "EOF"},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "", "range query's answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.serve)
			defer server.Close()
			stdout, _, err := execute(t, "--prometheus", server.URL, "--since", "2d")
			if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(stdout, c.stdout) {
				t.Errorf("error %v, want %q\n%s", err, c.err, stdout)
			}
		})
	}
	if _, _, err := execute(t, "--prometheus", "http://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "query Prometheus") {
		t.Errorf("error %v of a server that is away", err)
	}
}

// BenchmarkMonth reads 10,000 workloads of a month at steps of five minutes from answers of Prometheus, and recommends.
func BenchmarkMonth(b *testing.B) {
	const workloads, files = 10_000, 2
	folder := b.TempDir()
	var paths []string
	for f := range files {
		path := filepath.Join(folder, fmt.Sprintf("%d.json", f))
		writeMonth(b, path, f, workloads/files)
		paths = append(paths, "--from", path)
	}
	b.ResetTimer()
	before := cpuTime()
	for range b.N {
		var out strings.Builder
		s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" },
			Now: func() time.Time { return testNow }}
		cmd := New(s)
		cmd.SetArgs(append(paths, "-o", "csv"))
		if err := cmd.ExecuteContext(b.Context()); err != nil {
			b.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != workloads+1 {
			b.Fatalf("%d rows", n)
		}
	}
	b.StopTimer()
	b.ReportMetric((cpuTime()-before).Seconds()/float64(b.N), "s-CPU")
	status, _ := os.ReadFile("/proc/self/status")
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(peak, &kib); err == nil {
		b.ReportMetric(kib/1024, "MiB-resident")
	}
}

// cpuTime is what this process took of all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for no other argument
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// writeMonth writes an answer to a range query.
func writeMonth(b *testing.B, path string, file, workloads int) {
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	var text []byte
	fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[`)
	for i := range workloads {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		if i%100 == 0 {
			text = text[:0]
			r := rand.New(rand.NewPCG(uint64(i), uint64(file)))
			for n := range 30 * 24 * 12 {
				text = fmt.Appendf(text, `,[%d,"%d"]`, testNow.Unix()-int64(30*24*12-n)*300, int64(4<<30+float64(8<<30)*r.Float64()))
			}
			text[0] = ' '
		}
		fmt.Fprintf(w, `{"metric":{"__name__":"gpuslice_agent_memory_used_bytes","namespace":"team-%d","pod":"web%d-%d-7f9c6d5b4-bbcdf","container":"main","device":"GPU-1"},"values":[`, i%20, file, i)
		w.Write(text)
		fmt.Fprint(w, "]}")
	}
	fmt.Fprint(w, "]}}")
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
}

// TestPatchOfContainers patches no owner below what another of its containers needs.
func TestPatchOfContainers(t *testing.T) {
	of := func(workload, container string, v sizing.Verdict, slice, size api.MiB) item {
		return item{Namespace: "a", Workload: workload, Kind: "Deployment", Container: container, Verdict: v, Slice: slice, Size: size}
	}
	var out, errs strings.Builder
	err := printPatches(cli.Streams{Out: &out, Err: &errs}, []item{
		of("web", "small", sizing.OverRequested, 24<<10, 4<<10), of("web", "large", sizing.Right, 24<<10, 22<<10),
		of("half", "known", sizing.OverRequested, 24<<10, 4<<10), of("half", "engine", sizing.TakesWhatIsGiven, 24<<10, 0),
		of("fine", "main", sizing.Right, 24<<10, 22<<10),
		of("two", "a", sizing.OverRequested, 24<<10, 4<<10), of("two", "b", sizing.OverRequested, 24<<10, 8<<10),
	})
	if err != nil || strings.Contains(out.String(), "name: half") ||
		strings.Contains(out.String(), "name: fine") || strings.Count(out.String(), "kind:") != 2 {
		t.Errorf("error %v\n%s", err, &out)
	}
	for _, want := range []string{"memory: 24Gi", "memory: 8Gi"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, &out)
		}
	}
	if !strings.Contains(errs.String(), "a/half: left as it is: 1 of its containers have no size") {
		t.Error(errs.String())
	}
}

// TestPatchOfKinds patches owners whose pods have a template that can change, and prints why there is no patch for others.
func TestPatchOfKinds(t *testing.T) {
	for kind, want := range map[string]string{
		"DaemonSet":   "apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: own\n",
		"CronJob":     "jobTemplate:",
		"StatefulSet": "kind: StatefulSet",
		"Job":         "a/own: no patch: the template of a Job does not change",
		"Pod":         "create it again",
		"":            "is unknown from the names of its pods",
		"PyTorchJob":  "PyTorchJob own makes its pods",
	} {
		var out strings.Builder
		i := item{Namespace: "a", Workload: "web", Kind: kind, owner: "own", Verdict: sizing.OverRequested, Slice: 24 << 10, Size: 4 << 10}
		if err := printPatches(cli.Streams{Out: &out, Err: &out}, []item{i}); err != nil || !strings.Contains(out.String(), want) ||
			!strings.Contains(out.String(), "gpuslice.dev/memory: 4Gi") {
			t.Errorf("%s: error %v, want %q in\n%s", kind, err, want, &out)
		}
	}
}

// TestLeftOut names the namespaces whose series are left out, five of them, and shows no character that moves a terminal's cursor.
func TestLeftOut(t *testing.T) {
	got := leftOut(&history.Records{LeftOut: map[string]int{"a": 1, "b": 3, "c\x1b[2J": 2, "d": 1, "e": 1, "f": 1, "": 1}})
	if want := `counted in each answer: 3 of namespace "b", 2 of namespace "c\x1b[2J", 1 of namespace "", 1 of namespace "a", 1 of namespace "d" and 2 more)`; !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFormulas: a spreadsheet takes no name for a formula, and numbers stay numbers.
func TestFormulas(t *testing.T) {
	for _, name := range []string{"=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", "\r=1+1",
		"\n-1+1", " =1+1", "-2+3+cmd|' /C calc'!A0", "＝1+1"} {
		var out strings.Builder
		saves, cost := int64(-5<<20), -1.5
		if err := printCSV(&out,
			[]item{{Namespace: name, Workload: name, Kind: name, Container: name, Pods: 1, Saves: &saves, SavesCost: &cost}}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("%q: %v, %q", name, err, rows)
		}
		for n, cell := range rows[1][:4] {
			if !strings.HasPrefix(cell, "'") {
				t.Errorf("%s is %q", rows[0][n], cell)
			}
		}
		if rows[1][9] != "-5" || rows[1][10] != "-1.5" {
			t.Errorf("numbers are %q", rows[1][9:11])
		}
	}
}

// TestUnknownSaving prints no number for what a change saves where that is not known.
func TestUnknownSaving(t *testing.T) {
	path := month(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	noSlice := filepath.Join(t.TempDir(), "usage.csv")
	if err := os.WriteFile(noSlice, []byte(strings.Replace(string(text), "slice_mib", "other", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, device, price, want string }{
		{noSlice, "", "2", ",,,no-slice,"}, {path, "", "2", ",,over-requested,"}, {path, "80Gi", "0", ",,over-requested,"},
	} {
		stdout, _, err := execute(t, "--from", c.path, "--price", c.price, "--device-memory", c.device, "-o", "csv", "web0")
		if err != nil || !strings.Contains(stdout, c.want) {
			t.Errorf("on %q at %s: error %v, want %q in\n%s", c.device, c.price, err, c.want, stdout)
		}
	}
	stdout, _, err := execute(t, "--from", noSlice, "-o", "json", "web0")
	if err != nil || strings.Contains(stdout, "saves") {
		t.Errorf("error %v\n%s", err, stdout)
	}
	for device, want := range map[string]bool{"": true, "80Gi": false} {
		stdout, _, err := execute(t, "--from", path, "--price", "2", "--device-memory", device, "web0")
		if err != nil || strings.Contains(stdout, "unknown") != want {
			t.Errorf("on %q: error %v\n%s", device, err, stdout)
		}
	}
}

// TestSharedPeak prints the memory of a GPU that several pods share as the peak of none, nor marks of its history.
func TestSharedPeak(t *testing.T) {
	const of = `{"metric":{"__name__":"DCGM_FI_DEV_FB_USED","exported_namespace":"a","exported_pod":%q,"UUID":%q},"values":[%s]}`
	var values []string
	for h := range 48 {
		values = append(values, fmt.Sprintf(`[%d,"%d"]`, testNow.Unix()-int64(48-h)*3600, 9000+h*100))
	}
	series := func(pod, gpu string) string { return fmt.Sprintf(of, pod, gpu, strings.Join(values, ",")) }
	path := filepath.Join(t.TempDir(), "shared.json")
	if err := os.WriteFile(path, []byte(`{"status":"success","data":{"result":[`+
		series("train-0", "GPU-1")+","+series("other-0", "GPU-1")+","+series("alone-0", "GPU-2")+`]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string][2]string{
		"text": {" 2d       unknown ", " 13.4Gi "}, "csv": {"a,train,StatefulSet,,1,48,,,,,,unknown,,", "a,alone,StatefulSet,,1,48,13700,"},
		"yaml": {"marks: []\n", "peak: 13700Mi"},
	} {
		for workload, shared := range map[string]bool{"train": true, "other": true, "alone": false} {
			stdout, _, err := execute(t, "--from", path, "-o", format, workload)
			own := strings.Contains(stdout, strings.ReplaceAll(want[1], "alone", workload))
			unknown := strings.Contains(stdout, strings.ReplaceAll(want[0], "train", workload))
			if err != nil || own == shared || unknown != shared {
				t.Errorf("%s of %s: error %v\n%s", format, workload, err, stdout)
			}
		}
	}
}

// TestFutureSample drops a sample far ahead, and keeps the histories of all others.
func TestFutureSample(t *testing.T) {
	path := month(t)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "team-a,web0-7f9c6d5b4-bbcdf,main,%d,9000,24576\n", testNow.Unix()+365*86400)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := execute(t, "--from", path, "-o", "csv", "web0", "web1")
	if err != nil || !strings.Contains(stdout, "web0,Deployment,main,1,672,") || !strings.Contains(stdout, "web1,Deployment,main,1,672,") ||
		!strings.Contains(stderr, "or later than this clock (1)") {
		t.Errorf("error %v\n%s\n%s", err, stdout, stderr)
	}
}

// TestRecommendFromService reads no more than its bounds of what the Service answers, and sends the cluster's credentials to the API
// server alone.
func TestRecommendFromService(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with Authorization %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	const served, most = 64 << 20, 8 << 20 // what buffers between the two hold is read too
	for _, status := range []int{http.StatusFound, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			read := make(chan int, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/monitoring/services/http:prometheus:9090/proxy/api/v1/query_range" {
					t.Errorf("a request for %s", r.URL)
				}
				w.Header().Set("Location", elsewhere.URL)
				w.WriteHeader(status)
				sent, chunk := 0, []byte(strings.Repeat("x", 1<<20))
				for sent < served {
					n, err := w.Write(chunk)
					if sent += n; err != nil {
						break
					}
				}
				read <- sent
			}))
			t.Cleanup(server.Close)
			config := filepath.Join(t.TempDir(), "config")
			text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: %q}}], "+
				"contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: secret}}]}", server.URL)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := execute(t, "--kubeconfig", config, "--prometheus", "monitoring/prometheus"); err == nil ||
				!strings.Contains(err.Error(), "query Prometheus") {
				t.Errorf("error %v", err)
			}
			if sent := <-read; sent > most {
				t.Errorf("%d MiB were read", sent>>20)
			}
		})
	}
}

// TestFitWithoutPools rounds no size up beyond the memory of the GPU.
func TestFitWithoutPools(t *testing.T) {
	for _, c := range []struct{ size, device, want api.MiB }{
		{1000, 0, 1024}, {1000, 81_559, 1024}, {81_500, 81_559, 81_559}, {81_559, 81_559, 81_559}, {81_500, 0, 81_664},
	} {
		if got, pool := (offers{}).fit(c.size, c.device); got != c.want || pool != "" {
			t.Errorf("%d on %d: %d of %q, want %d", c.size, c.device, got, pool, c.want)
		}
	}
}

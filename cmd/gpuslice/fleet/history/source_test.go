package history

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pairs is what a series has: value at each hour of a day.
func pairs(value float64) string {
	var all []string
	for hour := range 24 {
		all = append(all, fmt.Sprintf("[%d.5,\"%g\"]", 1_700_000_000+3600*hour, value+float64(hour)*mebibyte))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// matrix is the answer to a range query with series, each `labels` => values.
func matrix(series ...string) string {
	return `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(series, ",") + `]}}`
}

func one(labels, values string) string { return `{"metric":{` + labels + `},"values":` + values + `}` }

const (
	agentUsed = `"__name__":"gpuslice_agent_memory_used_bytes","exported_namespace":"a","namespace":"gpuslice-system","exported_pod":"web-7f9c6d5b4-bbcdf","pod":"agent-x2x2x","exported_container":"main","device":"GPU-1"`
	dcgm      = `"__name__":"DCGM_FI_DEV_FB_USED","Hostname":"n1","UUID":"GPU-1","namespace":"a","container":"main","pod":`
)

func readAll(t *testing.T, texts ...string) (*Records, []*Record) {
	t.Helper()
	r := NewRecords()
	for _, text := range texts {
		if err := r.read(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return r, r.All()
}

// TestOwners takes the owners of pods from kube-state-metrics where names do not show them.
func TestOwners(t *testing.T) {
	for _, c := range []struct {
		pod, kind, name string
		want            Owner
	}{
		{"web-7f9c6d5b4-bbcdf", "ReplicaSet", "web-7f9c6d5b4", Owner{"Deployment", "web"}},
		{"nightly-29384756-bbcdf", "Job", "nightly-29384756", Owner{"CronJob", "nightly"}},
		{"train-bbcdf", "Job", "train", Owner{"Job", "train"}},
		{"agent-bbcdf", "DaemonSet", "agent", Owner{"DaemonSet", "agent"}},
		{"llm-worker-0", "PyTorchJob", "llm", Owner{"PyTorchJob", "llm"}},
		{"llm-worker-0", strings.Repeat("x", 300), "llm", Owner{"StatefulSet", "llm-worker"}},
	} {
		used := strings.NewReplacer("web-7f9c6d5b4-bbcdf", c.pod).Replace(agentUsed)
		owner := fmt.Sprintf(
			`"__name__":"kube_pod_owner","namespace":"a","pod":%q,"container":"kube-state-metrics","owner_kind":%q,"owner_name":%q`,
			c.pod, c.kind, c.name)
		if _, all := readAll(t, matrix(one(owner, `[[1,"1"]]`), one(used, pairs(1<<30)))); len(all) != 1 || all[0].Owner != c.want {
			t.Errorf("%s of %s %.20s: %v, want %v", c.pod, c.kind, c.name, all[0].Owner, c.want)
		}
	}
}

// TestForgedNames: Prometheus keeps the names that a tenant's pod gives others as exported_, and agents alone speak of others.
func TestForgedNames(t *testing.T) {
	forged := strings.NewReplacer(`"namespace":"gpuslice-system"`, `"namespace":"tenant"`,
		`"pod":"agent-x2x2x"`, `"pod":"forger-0"`).Replace(agentUsed)
	for _, metric := range []string{"gpuslice_agent_memory_used_bytes", "gpuslice_guard_memory_used_bytes"} {
		_, all := readAll(t,
			matrix(one(agentUsed, pairs(8<<30)), one(strings.Replace(forged, "gpuslice_agent_memory_used_bytes", metric, 1), pairs(70<<30))))
		got := map[Key]bool{}
		for _, r := range all {
			if got[r.Key] = true; r.Key.Namespace == "a" && r.Memory.Peak() > 9<<10 {
				t.Errorf("%s: another namespace's workload has a peak of %g MiB", metric, r.Memory.Peak())
			}
		}
		if want := map[Key]bool{{"", "a", "web", "main"}: true, {"", "tenant", "forger", "main"}: true}; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", metric, got, want)
		}
	}
	cache := strings.Replace(forged, "gpuslice_agent_memory_used_bytes", "vllm:kv_cache_usage_perc", 1)
	if _, all := readAll(t, matrix(one(agentUsed, pairs(8<<30)), one(cache, `[[1700000000,"0.9"]]`))); len(all) != 1 || all[0].EngineUse != 0 {
		t.Errorf("another's cache: %+v", all)
	}
	r := NewRecords()
	r.System = "gpus"
	if err := r.read(strings.NewReader(matrix(one(strings.Replace(agentUsed, "gpuslice-system", "gpus", 1), pairs(8<<30))))); err != nil {
		t.Fatal(err)
	}
	if all := r.All(); len(all) != 1 || all[0].Key != (Key{"", "a", "web", "main"}) {
		t.Errorf("agents elsewhere: %+v", all)
	}
}

// TestBound: the namespace that has most gives up room, of equal ones the first by name, however many namespaces there are.
func TestBound(t *testing.T) {
	for range 50 {
		r, all := NewRecords(), map[string]int{}
		r.server = true
		c := bound[string]{most: 9}
		for _, name := range []string{"c1", "c2", "c3", "b1", "b2", "b3", "a1", "a2", "a3", "d1", "d2", "d3"} {
			if admit(r, &c, all, name[:1], name) == nil {
				all[name] = 1
			}
		}
		if got := strings.Join(slices.Sorted(maps.Keys(all)), " "); got != "a1 a2 b1 b2 c1 c2 c3 d1 d2" ||
			fmt.Sprint(r.LeftOut) != "map[a:1 b:1]" {
			t.Fatalf("%s, left out: %v", got, r.LeftOut)
		}
	}
	r, all, c := NewRecords(), map[int]int{}, bound[int]{most: MaxSeries}
	r.server = true
	for n := range 2 * MaxSeries {
		_ = admit(r, &c, all, fmt.Sprint(n%(MaxSeries/4)*(n/MaxSeries*3+1)), n)
	}
	if c.all != MaxSeries {
		t.Errorf("%d series", c.all)
	}
}

func TestRangeQuery(t *testing.T) {
	_, all := readAll(t, matrix(
		one(agentUsed, pairs(8<<30)),
		one(strings.ReplaceAll(agentUsed, "bbcdf", "fghjk"), pairs(9<<30)),
		one(strings.ReplaceAll(agentUsed, "used_bytes", "slice_bytes"), `[[1700000000,"17179869184"]]`),
		one(strings.ReplaceAll(agentUsed, "used_bytes", "peak_bytes"),
			`[[1700000000,"1e10"],[1700003600,"1e10"],[1700007200,"12884901888"],[1700010800,"13958643712"]]`),
		one(strings.ReplaceAll(agentUsed, "memory_used_bytes", "terminations_total")+`,"result":"terminated"`, `[[1,"1"],[2,"3"],[3,"1"]]`),
		one(strings.ReplaceAll(agentUsed, "memory_used_bytes", "terminations_total")+`,"result":"dry-run"`, `[[1,"1"],[2,"3"]]`),
		one(strings.ReplaceAll(agentUsed, "gpuslice_agent_memory_used_bytes", "vllm:kv_cache_usage_perc"), `[[1,"0.4"],[2,"0.3"],[3,"7"]]`),
		`{"values":`+pairs(1<<30)+`,"metric":{"namespace":"b","pod":"db-0","container":"db"}}`,
		`{"value":[1700000000,"2147483648"],"metric":{"namespace":"b","pod":"db-0","container":"db"}}`,
		one(`"__name__":"up","pod":"x"`, pairs(1)), one(`"__name__":"other_bytes"`, pairs(1)),
	))
	if len(all) != 2 {
		t.Fatalf("%d workloads", len(all))
	}
	web, db := all[0], all[1]
	if web.Key != (Key{"", "a", "web", "main"}) || web.Owner.Kind != "Deployment" || web.Slice != 16<<10 ||
		web.Memory.Peak() != 13<<10 || math.Abs(web.Memory.Hours()-24) > 0.1 {
		t.Errorf("web: %+v, peak %g, %g hours", web, web.Memory.Peak(), web.Memory.Hours())
	}
	if web.Events.Terminated != 3 || web.EngineUse != 0.4 {
		t.Errorf("web: %+v", web)
	}
	if db.Key != (Key{"", "b", "db", ""}) || db.Owner.Kind != "StatefulSet" || db.Memory.Peak() != 2048 {
		t.Errorf("db: %+v, peak %g", db, db.Memory.Peak())
	}
}

// TestDCGMShared leaves out what DCGM measures of a GPU that several pods have at one time; one after the other is no sharing.
func TestDCGMShared(t *testing.T) {
	later := strings.ReplaceAll(pairs(5000), "[17", "[18")
	for _, c := range []struct {
		name, other string
		shared      bool
	}{
		{"alone", one(dcgm+`"train-0"`, later), false},
		{"one after the other", one(dcgm+`"train-1"`, later), false},
		{"at one time", one(dcgm+`"other-0"`, pairs(5000)), true},
		{"two exporters", one(dcgm+`"train-0","instance":"b"`, pairs(5000)), false},
		{"a pod of the same name elsewhere", one(strings.Replace(dcgm, `"namespace":"a"`, `"namespace":"b"`, 1)+`"train-0"`, pairs(5000)), true},
		{"another container of the pod", one(dcgm+`"train-0","exported_container":"other"`, pairs(5000)), true},
		{"on a GPU of that name in another cluster", one(dcgm+`"other-0","cluster":"west"`, pairs(5000)), false},
		{"on another GPU", one(strings.ReplaceAll(dcgm, "GPU-1", "GPU-2")+`"other-0"`, pairs(5000)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, all := readAll(t, matrix(one(dcgm+`"train-0"`, pairs(5000)), c.other))
			for _, r := range all {
				if r.Shared != c.shared {
					t.Errorf("%v: shared is %t", r.Key, r.Shared)
				}
			}
		})
	}
}

func TestCSV(t *testing.T) {
	const rows = `Namespace,pod,container,timestamp,memory_bytes,slice_bytes
a,web-7f9c6d5b4-bbcdf,main,2026-11-01T12:00:00Z,1073741824,2147483648
a,web-7f9c6d5b4-bbcdf,main,1793534700,2147483648,
a,"web-7f9c6d5b4-fghjk",main,1793534400,NaN,4294967296
a,web-7f9c6d5b4-fghjk,main,1793534400,,
a,web-7f9c6d5b4-fghjk,main,1793534400,-5,
a,job-28374651-q4x7z,main,1793534400,1e6,
`
	r, all := readAll(t, rows)
	if len(all) != 2 || r.Dropped != 3 {
		t.Fatalf("%d workloads, %d samples dropped", len(all), r.Dropped)
	}
	if job, web := all[0], all[1]; job.Owner != (Owner{"CronJob", "job"}) || web.Memory.Peak() != 2048 || web.Slice != 4096 {
		t.Errorf("%+v, %+v", job, web)
	}
}

func TestOwnerOf(t *testing.T) {
	for pod, want := range map[string]Owner{
		"web-7f9c6d5b4-abcde":    {"Pod", "web-7f9c6d5b4-abcde"}, // no controller names pods with vowels
		"web-7f9c6d5b4-bbcdf":    {"Deployment", "web"},
		"db-12":                  {"StatefulSet", "db"},
		"nightly-29384756-bbcdf": {"CronJob", "nightly"},
		"agent-bbcdf":            {"", "agent"},
		"notebook":               {"Pod", "notebook"},
	} {
		if got := OwnerOf(pod); got != want {
			t.Errorf("%s is of %v, want %v", pod, got, want)
		}
	}
}

// TestUntil leaves out samples of a clock that was ahead.
func TestUntil(t *testing.T) {
	r := NewRecords()
	r.Until = 1_700_003_600
	if err := r.read(strings.NewReader(matrix(one(agentUsed, pairs(8<<30))))); err != nil {
		t.Fatal(err)
	}
	if all := r.All(); len(all) != 1 || all[0].Memory.Hours() > 2 || r.Dropped != 23 {
		t.Errorf("%d workloads, %d dropped", len(all), r.Dropped)
	}
}

func TestBadInput(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {"", "empty"},
		"half":             {matrix(one(agentUsed, pairs(1)))[:300], "EOF"},
		"an error":         {`{"status":"error","errorType":"bad_data","error":"parse error"}`, "parse error"},
		"a vector":         {`{"status":"success","data":{"resultType":"scalar"}}`, "no data.result"},
		"a list":           {`[1]`, "was expected"},
		"a sample":         {matrix(one(agentUsed, `[["a","b"]]`)), "is not [seconds"},
		"a number":         {matrix(one(agentUsed, `[[1,"b"]]`)), "is not [seconds"},
		"no list":          {matrix(one(agentUsed, `5`)), "no list of [seconds"},
		"no metric":        {matrix(`{"values":[]}`), "without metric"},
		"a long name":      {matrix(one(`"pod":"`+long+`"`, pairs(1))), "at most 253"},
		"a long device":    {matrix(one(`"pod":"a","device":"`+strings.Repeat("x", 1025)+`"`, pairs(1))), "at most 1024"},
		"a long result":    {matrix(one(`"pod":"a","result":"`+long+`"`, pairs(1))), "at most 253"},
		"samples twice":    {matrix(`{"value":[1,"1"],"values":[],"metric":{"pod":"a"}}`), "twice before"},
		"nested":           {matrix(one(agentUsed, strings.Repeat("[", 20_000))), "depth"},
		"columns":          {"a,b\n1,2\n", "needs a column"},
		"a short row":      {"pod,seconds,memory_mib\na,1\n", "line 2: 2 columns"},
		"a time":           {"pod,seconds,memory_mib\na,x,1\n", "line 2: time"},
		"a memory":         {"pod,seconds,memory_mib\na,1,x\n", "line 2: memory"},
		"no pod":           {"pod,seconds,memory_mib\n,1,1\n", "names no pod"},
		"a long line":      {"pod,seconds,memory_mib\n" + strings.Repeat("x", maxLine+1), "longer than"},
		"many columns":     {strings.Repeat("a,", 100), "more than 64 columns"},
		"quotes":           {"pod,seconds,memory_mib\n\"a,1,1\n", "line 2"},
		"a broken archive": {"\x1f\x8bxx", "unzip"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := NewRecords().read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// endless repeats a text after a beginning.
type endless struct{ beginning, text string }

func (e *endless) Read(p []byte) (int, error) {
	if e.beginning == "" {
		e.beginning = strings.Repeat(e.text, 1+4096/len(e.text))
	}
	n := copy(p, e.beginning)
	e.beginning = e.beginning[n:]
	return n, nil
}

// TestEndless reads what never ends: an error comes, and not the end of memory.
func TestEndless(t *testing.T) {
	for name, c := range map[string]struct{ beginning, text, want string }{
		"a string": {`{"status":"`, "x", "more than 16 MiB"},
		"a key":    {`{"`, "x", "more than 16 MiB"},
		"spaces":   {`{`, " ", "more than 16 MiB"},
		"values":   {`{"data":{"result":[{"values":[[1,"1"]`, `,[1,"1"]`, "more than 16 MiB"},
		"csv":      {"pod,seconds,memory_mib\na", "x", "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := NewRecords().read(&endless{c.beginning, c.text}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	var pods strings.Builder
	pods.WriteString("pod,seconds,memory_mib\n")
	for i := range MaxWorkloads + 1 {
		fmt.Fprintf(&pods, "p%dx,1,1\n", i)
	}
	if err := NewRecords().read(strings.NewReader(pods.String())); !errors.Is(err, ErrTooMuch) {
		t.Errorf("%v for too many workloads", err)
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "range.json.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprintln(z, matrix(one(agentUsed, pairs(1<<30))), matrix(one(agentUsed, pairs(2<<30))))
	z.Close()
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	r := NewRecords()
	if err := r.ReadFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if all := r.All(); len(all) != 1 || math.Abs(all[0].Memory.Peak()-2048-23) > 1 {
		t.Errorf("%d workloads", len(all))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewRecords().ReadFile(ended, path, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if err := NewRecords().ReadFile(t.Context(), path+".none", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	// Short ones: an input with new coverage is minimized, which takes up to a minute for each that is long.
	f.Add(matrix(one(`"__name__":"gpuslice_agent_memory_used_bytes","pod":"a-0"`, `[[1,"1"]]`)))
	f.Add(matrix(one(`"__name__":"DCGM_FI_DEV_FB_USED","pod":"a-0","UUID":"b"`, `[[1,"NaN"],[2,"1e400"]]`)))
	f.Add("pod,seconds,memory_mib\na,1,1\n\"b\",2,\n")
	f.Fuzz(func(_ *testing.T, text string) {
		r := NewRecords()
		if err := r.read(strings.NewReader(text)); err == nil {
			for _, record := range r.All() {
				if peak := record.Memory.Peak(); !(peak >= 0 && peak <= 1<<24) {
					panic(peak)
				}
			}
		}
	})
}

// TestCounters counts what rises between files, and what made a counter appear.
func TestCounters(t *testing.T) {
	terminations := strings.ReplaceAll(agentUsed, "memory_used_bytes", "terminations_total") + `,"result":"terminated"`
	for _, c := range []struct {
		name  string
		files []string
		want  int
	}{
		{"between two files", []string{`[[1700000000,"1"]]`, `[[1700086400,"3"]]`}, 2},
		{"appeared", []string{`[[1700040000,"1"]]`}, 1},
		{"there from the beginning", []string{`[[1700000000,"1"]]`}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			texts := []string{matrix(one(agentUsed, pairs(8<<30)))}
			for _, values := range c.files {
				texts = append(texts, matrix(one(terminations, values)))
			}
			if _, all := readAll(t, texts...); len(all) != 1 || all[0].Events.Terminated != c.want {
				t.Errorf("%+v, want %d", all[0].Events, c.want)
			}
		})
	}
	r := NewRecords()
	for _, values := range []string{`[[1700000000,"1.017"]]`, `[[1700086400,"2.03"]]`} {
		if err := r.ReadRangeQuery(strings.NewReader(matrix(one(agentUsed, values))), terminationsOfHour); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.ReadRangeQuery(strings.NewReader(matrix(one(agentUsed, pairs(8<<30)))), "gpuslice_agent_memory_used_bytes"); err != nil {
		t.Fatal(err)
	}
	if all := r.All(); len(all) != 1 || all[0].Events.Terminated != 3 {
		t.Errorf("%+v of hours", all[0].Events)
	}
}

// TestDCGMBesideAgents keeps what DCGM measured of a GPU out of what agents measured, and knows of sharing with what they measured.
func TestDCGMBesideAgents(t *testing.T) {
	agentOf := strings.NewReplacer("web-7f9c6d5b4-bbcdf", "other-0").Replace(agentUsed)
	_, all := readAll(t, matrix(one(agentOf, pairs(2<<30)), one(dcgm+`"train-0"`, pairs(9000)), one(dcgm+`"other-0"`, pairs(9000))))
	if len(all) != 2 {
		t.Fatalf("%d workloads", len(all))
	}
	if other, train := all[0], all[1]; other.Shared || other.Memory.Peak() > 3000 || !train.Shared {
		t.Errorf("other: shared %t, peak %g; train: shared %t", other.Shared, other.Memory.Peak(), train.Shared)
	}
}

// TestDCGMFree adds what is free to what is used.
func TestDCGMFree(t *testing.T) {
	used := dcgm + `"train-0"`
	_, all := readAll(t, matrix(one(used, `[[1700000000,"30000"],[1700003600,"40000"]]`),
		one(strings.ReplaceAll(used, "FB_USED", "FB_FREE"), `[[1700000000,"51000"],[1700003600,"41000"]]`)))
	if len(all) != 1 || all[0].Device != 81_000 {
		t.Errorf("%+v", all)
	}
}

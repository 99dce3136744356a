package history

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
)

const (
	aDay  = 24 * time.Hour
	until = 1_700_086_400
)

// read reads a day from a server.
func read(t *testing.T, p *Prometheus) (*Records, error) {
	t.Helper()
	return p.Read(t.Context(), api.SystemNamespace, time.Unix(until, 0).Add(-aDay), time.Unix(until, 0), silent)
}

// TestIncomplete: an answer that its server calls incomplete is reported so, whatever the server's word for it.
func TestIncomplete(t *testing.T) {
	whole := matrix(one(dcgm+`"train-0"`, pairs(5000)))
	with := func(more string) string { return strings.TrimSuffix(whole, "}") + "," + more + "}" }
	for _, c := range []struct{ name, text, header, want string }{
		{"a whole answer", whole, "", ""},
		{"without warnings", with(`"warnings":null,"isPartial":false`), "", ""},
		{"a store of Thanos is down", with(`"warnings":["No StoreAPIs matched for this query"]`), "", "No StoreAPIs matched for this query"},
		{"a warning before the data", `{"warnings":["a store is down"],` + strings.TrimPrefix(whole, "{"), "", "a store is down"},
		{"a storage node of VictoriaMetrics is down", with(`"isPartial":true`), "", "isPartial"},
		{"M3 stopped at a limit", whole, "max_fetch_series_limit_applied", "max_fetch_series_limit_applied"},
		{"a word about the query", with(`"warnings":["PromQL warning: metric might not be a counter"],"infos":["PromQL info: a"]`), "", ""},
		{"control characters", with(`"warnings":["a\u001b[31mb"]`), "", "a [31mb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := at(t, func(*http.Request) (*http.Response, error) {
				resp, err := respond(http.StatusOK, c.text)
				if c.header != "" {
					resp.Header.Set("M3-Results-Limited", c.header)
				}
				return resp, err
			})
			records, err := read(t, p)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(records.Incomplete, ";"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	var many Incomplete
	for n := range 100 {
		many.add(fmt.Sprint(n, strings.Repeat("x", 10_000)))
	}
	if len(many) != maxWarnings || len(many[0]) > maxWarning {
		t.Errorf("%d warnings, the first of %d bytes", len(many), len(many[0]))
	}
}

// TestSmallerRanges: what less time would cure is read with less time, whoever the server is.
func TestSmallerRanges(t *testing.T) {
	for _, c := range []struct {
		server, problem string
		status          int
	}{
		{"VictoriaMetrics", `{"status":"error","errorType":"422","error":"cannot select more than -search.maxSamplesPerQuery=1000000 samples"}`, http.StatusUnprocessableEntity},
		{"Mimir, chunks", `{"status":"error","errorType":"execution","error":"the query exceeded the maximum number of chunks (err-mimir-max-chunks-per-query)"}`,
			http.StatusUnprocessableEntity},
		{"Mimir, length", `{"status":"error","errorType":"bad_data","error":"the query time range exceeds the limit (query length: 24h0m0s, limit: 7h0m0s)"}`,
			http.StatusBadRequest},
		{"Thanos", `{"status":"error","errorType":"internal","error":"exceeded samples limit: limit 1000 violated (got 1200)"}`, http.StatusServiceUnavailable},
	} {
		t.Run(c.server, func(t *testing.T) {
			hours := map[int64]bool{}
			p := at(t, func(r *http.Request) (*http.Response, error) {
				q := r.URL.Query()
				start, _ := strconv.ParseInt(q.Get("start"), 10, 64)
				end, _ := strconv.ParseInt(q.Get("end"), 10, 64)
				if end-start > 6*3600 {
					return respond(c.status, c.problem)
				}
				for hour := start; hour <= end; hour += 3600 {
					hours[hour] = true
				}
				return respond(http.StatusOK, matrix())
			})
			if _, err := read(t, p); err != nil || len(hours) != 25 {
				t.Errorf("error %v, %d hours", err, len(hours))
			}
		})
	}
	calls := 0
	p := at(t, func(*http.Request) (*http.Response, error) {
		calls++
		return respond(http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}`)
	})
	if _, err := read(t, p); err == nil || calls != 1 {
		t.Errorf("an error that no range cures: %v after %d requests", err, calls)
	}
}

// TestBusy waits for as long as a server with too much to do requests, a few times.
func TestBusy(t *testing.T) {
	for _, c := range []struct {
		status     int
		retryAfter string
		denials    int
		waits      time.Duration
		err        string
	}{
		{http.StatusTooManyRequests, "10", 2, 20 * time.Second, ""},
		{http.StatusTooManyRequests, "", 1, time.Second, ""},
		{http.StatusServiceUnavailable, "10", 1, 10 * time.Second, ""},
		{http.StatusTooManyRequests, "9999999", 1, maxPause, ""},
		{http.StatusTooManyRequests, "1", maxTries, 4 * time.Second, "429"},
		{http.StatusServiceUnavailable, "", 1, 0, "503"},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.retryAfter), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, left := time.Now(), c.denials
				p := at(t, func(*http.Request) (*http.Response, error) {
					if left--; left >= 0 {
						resp, err := respond(c.status, "busy")
						resp.Header.Set("Retry-After", c.retryAfter)
						return resp, err
					}
					return respond(http.StatusOK, matrix())
				})
				_, err := read(t, p)
				if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) || time.Since(began) != c.waits {
					t.Errorf("error %v after %s, want %q after %s", err, time.Since(began), c.err, c.waits)
				}
			})
		})
	}
}

// TestHeaders sends what the user gives, and the server's remedy reaches the user.
func TestHeaders(t *testing.T) {
	p := at(t, func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("X-Scope-OrgID") == "team-a" {
			return respond(http.StatusOK, matrix())
		}
		resp, err := respond(http.StatusUnauthorized, "no org id\n")
		resp.Header.Set("Content-Type", "text/plain; charset=utf-8")
		return resp, err
	})
	if _, err := read(t, p); err == nil || !strings.Contains(err.Error(), `no org id; name its tenant with --prometheus-header "X-Scope-OrgID: TENANT"`) {
		t.Errorf("error %v", err)
	}
	if err := p.addHeaders([]string{"X-Scope-OrgID: team-a"}, true); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, p); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "X-Scope-OrgID", "X-Scope-OrgID:", ": a", "Authorization: Bearer x", "impersonate-user: admin", "Host: other"} {
		if err := p.addHeaders([]string{bad}, true); err == nil {
			t.Errorf("%q is accepted for a Service", bad)
		}
	}
	if err := p.addHeaders([]string{"Authorization: Basic eDp5"}, false); err != nil {
		t.Errorf("a login at a URL: %v", err)
	}
}

// TestClusters: series of two clusters are never one workload, and one of them can be chosen.
func TestClusters(t *testing.T) {
	flat := func(mib int) string { return fmt.Sprintf(`[[1700000000,"%[1]d"],[1700003600,"%[1]d"]]`, mib) }
	answer := matrix(one(dcgm+`"train-0","cluster":"east"`, flat(30_000)), one(dcgm+`"train-0","cluster":"west"`, flat(2_000)),
		one(dcgm+`"train-0"`, flat(100)))
	for chosen, want := range map[string]map[string]float64{"": {"east": 30_000, "west": 2_000, "": 100}, "west": {"west": 2_000}, "north": {}} {
		p := at(t, func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Query().Get("query"), dcgmUsed) {
				return respond(http.StatusOK, answer)
			}
			return respond(http.StatusOK, matrix())
		})
		p.Cluster = chosen
		records, err := read(t, p)
		if err != nil {
			t.Fatal(err)
		}
		all := records.All()
		for _, r := range all {
			if r.Memory.Peak() != want[r.Key.Cluster] || r.Shared {
				t.Errorf("%q: %v has a peak of %g, shared %t", chosen, r.Key, r.Memory.Peak(), r.Shared)
			}
		}
		if len(all) != len(want) {
			t.Errorf("%q: %d workloads, want %v", chosen, len(all), want)
		}
	}
}

// TestExporters: the pod of DCGM exporter is no workload, whatever its name.
func TestExporters(t *testing.T) {
	for _, c := range []struct {
		name, labels string
		workloads    int
	}{
		{"by its pod", `"pod":"nvidia-dcgm-exporter-abcde"`, 0},
		{"by the container of its chart", `"pod":"gpu-metrics-x7k2p","container":"exporter"`, 0},
		{"by the container of the GPU Operator", `"pod":"gpu-metrics-x7k2p","container":"nvidia-dcgm-exporter"`, 0},
		{"by what was scraped", `"pod":"gpu-metrics-x7k2p","container":"metrics","` + labelOfExporter + `":"true"`, 0},
		{"a workload that it measured", `"pod":"nvidia-dcgm-exporter-abcde","container":"exporter","exported_pod":"train-0"`, 1},
		{"a workload with its labels kept", `"pod":"train-0","container":"trainer"`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			records, all := readAll(t, matrix(one(`"__name__":"DCGM_FI_DEV_FB_USED","Hostname":"n","UUID":"GPU-1","namespace":"a",`+c.labels, pairs(5000))))
			if len(all) != c.workloads || records.Exporters != 1-c.workloads {
				t.Errorf("%d workloads, %d GPUs of no pod", len(all), records.Exporters)
			}
		})
	}
	for _, q := range dcgmQueries {
		if i := slices.Index([]string{dcgmUsed, dcgmFree, dcgmTotal}, q.metric); i < 0 || strings.Count(q.query, q.metric) != 3 {
			t.Errorf("%s: %s", q.metric, q.query)
		}
	}
}

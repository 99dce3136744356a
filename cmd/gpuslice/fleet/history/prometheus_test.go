package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
)

// serve is the transport of a Prometheus.
type serve func(*http.Request) (*http.Response, error)

func (s serve) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func at(t *testing.T, s serve) *Prometheus {
	t.Helper()
	p, err := AtURL("http://prometheus:9090", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.client.Transport = s
	return p
}

func respond(status int, text string) (*http.Response, error) {
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(text))}, nil
}

func silent(float64) {}

// TestSlow ends a query that takes too long, and any query with its context.
func TestSlow(t *testing.T) {
	hang := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, err := at(t, hang).Read(t.Context(), api.SystemNamespace, began.Add(-24*time.Hour), began, silent); !errors.Is(err, errSlow) ||
			time.Since(began) != queryTimeout {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := at(t, hang).Read(ctx, api.SystemNamespace, began.Add(-24*time.Hour), began,
			silent); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
	})
}

// TestTooManySamples reads every hour once from a server that takes no more than some hours at a time.
func TestTooManySamples(t *testing.T) {
	const problem = `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`
	until := time.Unix(1_790_000_000, 0)
	for _, most := range []int64{24, 23, 5, 1, 0} {
		seen := map[string]map[int64]int{}
		p := at(t, func(r *http.Request) (*http.Response, error) {
			q := r.URL.Query()
			start, _ := strconv.ParseInt(q.Get("start"), 10, 64)
			end, _ := strconv.ParseInt(q.Get("end"), 10, 64)
			if (end-start)/3600+1 > most {
				return respond(http.StatusUnprocessableEntity, problem)
			}
			if seen[q.Get("query")] == nil {
				seen[q.Get("query")] = map[int64]int{}
			}
			for hour := start; hour <= end; hour += 3600 {
				seen[q.Get("query")][hour]++
			}
			return respond(http.StatusOK, matrix())
		})
		_, err := p.Read(t.Context(), api.SystemNamespace, until.Add(-50*time.Hour), until, silent)
		if most == 0 {
			if err == nil || !strings.Contains(err.Error(), tooManySamples) {
				t.Errorf("error %v", err)
			}
			continue
		}
		if err != nil || len(seen) != len(queries)+len(dcgmQueries) {
			t.Errorf("at most %d hours: error %v, %d queries", most, err, len(seen))
		}
		for query, hours := range seen {
			for hour, n := range hours {
				if n != 1 || hour%3600 != 3599 {
					t.Errorf("at most %d hours: %d was read %d times by %s", most, hour, n, query)
				}
			}
			if len(hours) != 51 {
				t.Errorf("at most %d hours: %d hours were read by %s", most, len(hours), query)
			}
		}
	}
}

// TestHostileSeries: what a tenant's metrics are labeled with leaves others' histories as they are.
func TestHostileSeries(t *testing.T) {
	until := time.Unix(1_700_086_400, 0)
	long := strings.Repeat("x", 300)
	for name, hostile := range map[string]func(yield func(string)){
		"long names": func(yield func(string)) {
			for _, label := range []string{"namespace", "exported_pod", "container", "device"} {
				yield(`"pod":"a","` + label + `":"` + strings.Repeat(long, 4) + `"`)
			}
		},
		"more workloads than there is room": func(yield func(string)) {
			for n := range MaxWorkloads + 10 {
				yield(fmt.Sprintf(`"namespace":"hostile","pod":"p","container":"c%d"`, n))
			}
		},
	} {
		for _, first := range []bool{true, false} {
			series := []string{one(`"namespace":"a","pod":"web-7f9c6d5b4-bbcdf","container":"main"`, pairs(8<<30))}
			hostile(func(labels string) { series = append(series, one(labels, `[[1700000000,"1073741824"]]`)) })
			if !first {
				slices.Reverse(series)
			}
			answer := matrix(series...)
			p := at(t, func(r *http.Request) (*http.Response, error) {
				if strings.Contains(r.URL.Query().Get("query"), "memory_used_bytes") {
					return respond(http.StatusOK, answer)
				}
				return respond(http.StatusOK, matrix())
			})
			records, err := p.Read(t.Context(), api.SystemNamespace, until.Add(-23*time.Hour), until, silent)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all := records.All()
			found := slices.ContainsFunc(all, func(r *Record) bool { return r.Key == Key{"", "a", "web", "main"} && r.Memory.Hours() > 1 })
			if !found || len(records.LeftOut) == 0 || len(all) > MaxWorkloads {
				t.Errorf("%s (first: %t): found: %t, %v series left out, %d workloads", name, first, found, records.LeftOut, len(all))
			}
		}
	}
}

// TestKills: the kills that kube-state-metrics reports count for the containers that it names, not for itself.
func TestKills(t *testing.T) {
	const kill = `"namespace":"monitoring","pod":"kube-state-metrics-0","container":"exporter","exported_namespace":"a","exported_pod":"web-7f9c6d5b4-bbcdf","exported_container":"main"`
	until := time.Unix(1_700_086_400, 0)
	p := at(t, func(r *http.Request) (*http.Response, error) {
		switch q := r.URL.Query().Get("query"); {
		case q == killed:
			return respond(http.StatusOK, matrix(one(kill, `[[1700003599,"1"]]`)))
		case strings.Contains(q, "memory_used_bytes"):
			return respond(http.StatusOK, matrix(one(agentUsed, pairs(8<<30))))
		}
		return respond(http.StatusOK, matrix())
	})
	records, err := p.Read(t.Context(), api.SystemNamespace, until.Add(-time.Hour), until, silent)
	if err != nil {
		t.Fatal(err)
	}
	if all := records.All(); len(all) != 1 || all[0].Key != (Key{"", "a", "web", "main"}) || all[0].Events.Terminated != 1 {
		t.Errorf("%+v", all)
	}
}

// TestAnswered takes the reason from what answers: Prometheus, the API server before it, or a proxy.
func TestAnswered(t *testing.T) {
	for text, want := range map[string]string{
		`{"status":"error","error":"parse error"}`:                                       "parse error",
		`{"kind":"Status","message":"services \"http:p:9090\" is forbidden","code":403}`: "is forbidden",
		`<html>`: "wants a login",
	} {
		p := at(t, func(*http.Request) (*http.Response, error) { return respond(http.StatusForbidden, text) })
		if _, err := p.Read(t.Context(), api.SystemNamespace, time.Unix(0, 0), time.Unix(1, 0), silent); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestFirstPeak takes what a container reached before it was first seen, if it cannot have been before all others.
func TestFirstPeak(t *testing.T) {
	peakOf := func(pod, values string) string {
		return one(strings.NewReplacer("used_bytes", "peak_bytes", "bbcdf", pod).Replace(agentUsed), values)
	}
	for values, want := range map[string]float64{`[[1700000000.5,"1e12"]]`: 8215, `[[1700036000.5,"10737418240"]]`: 10240} {
		if _, all := readAll(t, matrix(one(agentUsed, pairs(8<<30)), peakOf("fghjk", values))); len(all) != 1 || all[0].Memory.Peak() != want {
			t.Errorf("peak %g, want %g", all[0].Memory.Peak(), want)
		}
	}
}

// TestSum adds up each minute once, from a server that takes no more than some hours at a time.
func TestSum(t *testing.T) {
	const problem = `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`
	from := time.Unix(1_790_000_000, 0).Truncate(24 * time.Hour)
	until := from.Add(50*time.Hour + 20*time.Minute)
	for _, most := range []time.Duration{24 * time.Hour, 5 * time.Hour, 50 * time.Minute} {
		next, seconds := from, 0
		p := at(t, func(r *http.Request) (*http.Response, error) {
			q := r.URL.Query()
			_, span, _ := strings.Cut(strings.TrimSuffix(q.Get("query"), "s:60s])"), "sum_over_time((m)[")
			long, err := strconv.Atoi(span)
			end, _ := strconv.ParseInt(q.Get("end"), 10, 64)
			if err != nil || q.Get("start") != q.Get("end") || q.Get("step") != "60" || end != next.Unix()+int64(long)-1 {
				t.Errorf("query %v, from %s", q, next)
			}
			if time.Duration(long)*time.Second > most {
				if most == 5*time.Hour { // an error after the data: none of it counts
					return respond(http.StatusOK,
						strings.TrimSuffix(strings.Replace(matrix(one(`"node":"a"`, `[[1,"1"]]`)), `"status":"success",`, "", 1), "}")+","+problem[1:])
				}
				return respond(http.StatusUnprocessableEntity, problem)
			}
			next = next.Add(time.Duration(long) * time.Second)
			return respond(http.StatusOK, matrix(one(`"node":"a"`, fmt.Sprintf(`[[%d,"%d"]]`, end, long)), one(`"node":"b"`, `[[1,"NaN"]]`),
				one(`"node":"c"`, `[[1,"+Inf"]]`), one(`"node":"d"`, `[[1,"-1"]]`)))
		})
		err := p.Sum(t.Context(), "m", from, until, func(labels map[string]string, sum float64) {
			if labels["node"] != "a" {
				t.Errorf("%g of %v", sum, labels)
			}
			seconds += int(sum)
		})
		if err != nil || seconds != int(until.Sub(from).Seconds()) {
			t.Errorf("at most %s: error %v, %d seconds", most, err, seconds)
		}
	}
	for text, want := range map[string]string{
		`{"status":"error","error":"parse error"}`:                   "parse error",
		matrix(one(`"node":"a"`, `[[1,2]`)):                          "invalid character",
		matrix(one(`"node":"a"`, `[[1,"x"]]`)):                       `is not [seconds, "value"]`,
		`{"status":"success","data":{` + strings.Repeat(" ", 65<<20): "MiB",
	} {
		p := at(t, func(*http.Request) (*http.Response, error) { return respond(http.StatusOK, text) })
		if err := p.Sum(t.Context(), "m", from, until, func(map[string]string, float64) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

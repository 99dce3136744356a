package observability

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/child"
	"github.com/gpuslice/gpuslice/test/observability/picture"
)

// prometheus is a running one. As a picture.Source it answers for the time from from to to.
type prometheus struct {
	*testing.T
	address  string
	from, to time.Time
}

// startPrometheus runs the program on a configuration, beside the shipped rules, until the test ends.
func startPrometheus(t *testing.T, program, config string, flags ...string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string][]byte{"prometheus.yml": []byte(config), "rules.yaml": read(t, shipped+"rules.yaml")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, append(flags, "--config.file=prometheus.yml", "--web.listen-address="+address)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	ended, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("prometheus said\n%s", text)
		}
	})
	return &prometheus{T: t, address: address, from: time.Now()}
}

// ready awaits that it answers queries.
func (p *prometheus) ready() {
	p.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	end := time.After(time.Minute)
	for {
		if response, err := http.Get("http://" + p.address + "/-/ready"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-again.C:
		case <-end:
			p.Fatal("prometheus is not ready")
		}
	}
}

// get asks the API for what is decoded into data.
func (p *prometheus) get(path string, query url.Values, data any) error {
	ctx, cancel := context.WithTimeout(p.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return nil
}

// await asks until the condition has an answer; the time that is drawn ends then.
func (p *prometheus) await(condition string) {
	p.Helper()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	end := time.After(5 * time.Minute)
	for {
		p.to = time.Now()
		series, err := p.Now(condition)
		if err == nil && len(series) > 0 {
			return
		}
		select {
		case <-again.C:
		case <-end:
			var targets any
			p.Fatalf("wait for %s: %v; targets %v: %v", condition, err, p.get("targets", nil, &targets), targets)
		}
	}
}

// matrix is what a query returns.
type matrix struct {
	Result []struct {
		Metric map[string]string `json:"metric"`
		Value  []any             `json:"value"`
		Values [][]any           `json:"values"`
	} `json:"result"`
}

func (m matrix) series() (out []picture.Series) {
	for _, r := range m.Result {
		s := picture.Series{Labels: r.Metric}
		if r.Value != nil {
			r.Values = append(r.Values, r.Value)
		}
		for _, v := range r.Values {
			value, err := strconv.ParseFloat(v[1].(string), 64)
			if err != nil || value != value { // no figure yet: 0 by 0
				continue
			}
			s.Points = append(s.Points, picture.Point{At: time.UnixMilli(int64(v[0].(float64) * 1000)), Value: value})
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// fill writes what Grafana would in the place of its variables: the whole time, and a few reads.
func (p *prometheus) fill(expr string) string {
	return replace(expr, "10s", fmt.Sprintf("%.0fs", p.to.Sub(p.from).Seconds()))
}

// Range implements picture.Source.
func (p *prometheus) Range(expr string) ([]picture.Series, error) {
	var m matrix
	err := p.get("query_range", url.Values{"query": {p.fill(expr)}, "start": {stamp(p.from)}, "end": {stamp(p.to)}, "step": {"2"}}, &m)
	return m.series(), err
}

// Now implements picture.Source.
func (p *prometheus) Now(expr string) ([]picture.Series, error) {
	var m matrix
	err := p.get("query", url.Values{"query": {p.fill(expr)}, "time": {stamp(p.to)}}, &m)
	return m.series(), err
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// values are those of a label.
func (p *prometheus) values(label string) (out []string) {
	p.Helper()
	if err := p.get("label/"+label+"/values", nil, &out); err != nil {
		p.Fatal(err)
	}
	return out
}

// types are those of the metrics scraped.
func (p *prometheus) types() map[string]string {
	p.Helper()
	var all map[string][]struct{ Type string }
	if err := p.get("metadata", nil, &all); err != nil {
		p.Fatal(err)
	}
	out := map[string]string{}
	for name, said := range all {
		out[name] = said[0].Type
	}
	return out
}

// healthy checks that every target is read and every rule evaluated.
func (p *prometheus) healthy() {
	p.Helper()
	var targets struct {
		ActiveTargets []struct {
			Labels            map[string]string
			Health, LastError string
		}
	}
	var evaluation struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	for path, data := range map[string]any{"targets": &targets, "rules": &evaluation} {
		if err := p.get(path, nil, data); err != nil {
			p.Fatal(err)
		}
	}
	for _, target := range targets.ActiveTargets {
		if target.Health != "up" {
			p.Errorf("target %v is %s: %s", target.Labels, target.Health, target.LastError)
		}
	}
	evaluated := 0
	for _, g := range evaluation.Groups {
		for _, r := range g.Rules {
			if evaluated++; r.Health != "ok" {
				p.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if want := len(rules(p.T)); evaluated != want {
		p.Errorf("%d rules were evaluated of %d", evaluated, want)
	}
}

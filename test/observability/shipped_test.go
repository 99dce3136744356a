package observability

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const shipped = "../../deploy/observability/"

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// alert is one rule of rules.yaml: an alert, or a recorded series.
type alert struct {
	Alert       string            `json:"alert"`
	Record      string            `json:"record"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// alerts are the rules that are one.
func alerts(t *testing.T) []alert {
	t.Helper()
	return slices.DeleteFunc(rules(t), func(a alert) bool { return a.Alert == "" })
}

func rules(t *testing.T) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(read(t, shipped+"rules.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// replace writes values in the place of Grafana's variables.
func replace(expr, interval, span string) string {
	return strings.NewReplacer("$__rate_interval", interval, "$__range", span, "$namespace", ".*", "$device", "GPU-0").Replace(expr)
}

// expressions are those of the alerts and of the dashboard, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, a := range rules(t) {
		out["rule "+a.Alert+a.Record] = a.Expr
	}
	var board struct {
		Panels []struct {
			Title   string                         `json:"title"`
			Targets []struct{ Expr, RefID string } `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(read(t, shipped+"dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			out["panel "+p.Title+" "+target.RefID] = replace(target.Expr, "1m", "5m")
		}
	}
	return out
}

// TestRunbook also asks that the section says what to check and to do; the alert itself says what it means.
func TestRunbook(t *testing.T) {
	t.Parallel()
	t.Run("has a section for each alert", func(t *testing.T) {
		t.Parallel()
		sections := map[string]string{}
		for _, part := range strings.Split(string(read(t, shipped+"RUNBOOK.md")), "\n## ")[1:] {
			name, text, _ := strings.Cut(part, "\n")
			sections[name] = text
		}
		const page = "https://github.com/gpuslice/gpuslice/blob/main/deploy/observability/RUNBOOK.md#"
		for _, a := range alerts(t) {
			text, ok := sections[a.Alert]
			if !ok {
				t.Errorf("RUNBOOK.md has no section %s", a.Alert)
			}
			for _, part := range []string{"Check", "Fix"} {
				if !strings.Contains(text, "- **"+part+"**: ") {
					t.Errorf("the section %s says nothing under %q", a.Alert, part)
				}
			}
			if got, want := a.Annotations["runbook_url"], page+strings.ToLower(a.Alert); got != want {
				t.Errorf("%s: runbook_url %s, want %s", a.Alert, got, want)
			}
			if a.Annotations["summary"] == "" || a.Annotations["description"] == "" || a.Labels["severity"] == "" {
				t.Errorf("%s lacks a summary, a description or a severity", a.Alert)
			}
			delete(sections, a.Alert)
		}
		for name := range sections {
			t.Errorf("RUNBOOK.md has a section %s, and there is no such alert", name)
		}
	})
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	t.Run("each is played in a test", func(t *testing.T) {
		t.Parallel()
		played := string(read(t, "testdata/alerts_test.yaml"))
		for _, a := range alerts(t) {
			for _, name := range []string{a.Alert + " fires", a.Alert + " is quiet"} {
				if !regexp.MustCompile(`(?m)^- name: ` + name + `$`).MatchString(played) {
					t.Errorf("testdata/alerts_test.yaml has no test %q", name)
				}
			}
		}
	})
}

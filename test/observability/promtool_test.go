package observability

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/observability/reference"
)

// programs returns what Prometheus' module is built to.
func programs(t *testing.T) cluster.Bin {
	t.Helper()
	if !cluster.Wanted("apiserver") {
		t.Skip("compiles Prometheus: set GPUSLICE_TEST=apiserver to run it")
	}
	bin, err := cluster.Build(t.Context(), os.Stderr, cluster.Prometheus())
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

func TestPromtool(t *testing.T) {
	t.Parallel()
	t.Run("accepts and plays the alerts", func(t *testing.T) {
		t.Parallel()
		bin, dir := programs(t), t.TempDir()
		for from, to := range map[string]string{shipped + "rules.yaml": "rules.yaml", "testdata/alerts_test.yaml": "test.yaml",
			shipped + "opencost.yaml": "opencost.yaml", "testdata/opencost_test.yaml": "opencost_test.yaml"} {
			if err := os.WriteFile(filepath.Join(dir, to), read(t, from), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", "rules.yaml", "opencost.yaml"},
			{"test", "rules", "test.yaml", "opencost_test.yaml"}} {
			cmd := exec.CommandContext(t.Context(), bin["promtool"], args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	})
}

// scraped are labels that Prometheus puts on every series of a target, and model, which the dashboard joins to the others by device.
var scraped = []string{"namespace", "pod", "node", "le", "model"}

// TestExpressions holds every metric and label of the alerts and of the dashboard against the pages that are
// written from the registries.
func TestExpressions(t *testing.T) {
	t.Parallel()
	t.Run("name what is served", func(t *testing.T) {
		t.Parallel()
		served := map[string][]string{}
		for _, page := range []string{"webhook", "guard", "cmd/agent"} {
			for _, m := range reference.Read(string(read(t, "../../"+page+"/METRICS.md"))) {
				names := []string{m.Name}
				if m.Type == "histogram" {
					names = []string{m.Name + "_bucket", m.Name + "_count", m.Name + "_sum"}
				}
				for _, name := range names {
					served[name] = m.Labels
				}
			}
		}
		all := expressions(t)
		recorded := map[string]bool{}
		for _, r := range rules(t) {
			recorded[r.Record] = true
		}
		where := slices.Sorted(maps.Keys(all))
		texts := make([]string, 0, len(where))
		for _, w := range where {
			texts = append(texts, all[w])
		}
		for i, selected := range selectors(t, programs(t)["selectors"], texts) {
			for metric, labels := range selected {
				if recorded[metric] {
					continue
				}
				have, ok := served[metric]
				if !ok {
					t.Errorf("%s: no metric %s is served", where[i], metric)
					continue
				}
				for _, l := range labels {
					if !slices.Contains(have, l) && !slices.Contains(scraped, l) {
						t.Errorf("%s: %s has no label %s, but %q", where[i], metric, l, have)
					}
				}
			}
		}
	})
}

// selectors asks Prometheus' own parser which metrics and labels expressions name.
func selectors(t *testing.T, program string, texts []string) (found []map[string][]string) {
	t.Helper()
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stdin = bytes.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

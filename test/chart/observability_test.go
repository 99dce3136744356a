package chart

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/test/install"
)

// TestObservability renders monitors, alerts and the dashboard, as who does without Helm applies
// them.
func TestObservability(t *testing.T) {
	t.Parallel()
	t.Run("the chart ships the folder of deploy", func(t *testing.T) {
		t.Parallel()
		rendered := byName(t, withoutHelmLabels(t, newHelm(t, "").render(version("v1"),
			"--set=metrics.podMonitor.enabled=true,metrics.guards.enabled=true,metrics.agents.enabled=true,metrics.alerts.enabled=true,metrics.dashboard.enabled=true")))
		const folder = "../../deploy/observability/"
		for _, name := range []string{"monitors.yaml", "alerts.yaml"} {
			text, err := os.ReadFile(folder + name)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := install.Objects(text)
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range byName(t, objects) {
				if diff := cmp.Diff(want, rendered[key]); diff != "" {
					t.Errorf("%s (-%s +chart)\n%s", key, name, diff)
				}
			}
		}
		text, err := os.ReadFile(folder + "dashboard.json")
		if err != nil {
			t.Fatal(err)
		}
		board, ok := rendered["ConfigMap gpuslice-dashboard"].(map[string]any)
		if !ok {
			t.Fatal("there is no ConfigMap gpuslice-dashboard")
		}
		if diff := cmp.Diff(string(text), board["data"].(map[string]any)["gpuslice.json"]); diff != "" {
			t.Errorf("(-dashboard.json +chart)\n%s", diff)
		}
		if got := board["metadata"].(map[string]any)["labels"].(map[string]any)["grafana_dashboard"]; got != "1" {
			t.Errorf("the label that Grafana's sidecar looks for is %v", got)
		}
	})
}

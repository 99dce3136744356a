package deploy_test

import (
	"os"
	"strings"
	"testing"
)

// observability is what is made of the alerts and of the dashboard: a chart reads no file from outside its folder.
func observability(t *testing.T) map[string]string {
	t.Helper()
	text := func(name string) string {
		b, err := os.ReadFile("observability/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	rules := text("rules.yaml")
	return map[string]string{
		"observability/alerts.yaml": prometheusRule(rules),
		"chart/rules.yaml":          rules,
		"chart/dashboard.json":      text("dashboard.json"),
	}
}

// prometheusRule is the object in which Prometheus' operator takes rules.
func prometheusRule(rules string) string {
	head := `# Made of rules.yaml by "make manifests": change that.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: gpuslice
  namespace: gpuslice-system
  labels: {app.kubernetes.io/name: gpuslice}
spec:
`
	var b strings.Builder
	for line := range strings.Lines(rules) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString("  " + line)
		}
	}
	return head + b.String()
}

package observability

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigs "sigs.k8s.io/yaml"
)

// podMonitor is as much of one as monitors.yaml has.
type podMonitor struct {
	Metadata struct{ Name, Namespace string } `json:"metadata"`
	Spec     struct {
		NamespaceSelector   struct{ Any bool }                      `json:"namespaceSelector"`
		Selector            struct{ MatchLabels map[string]string } `json:"selector"`
		SampleLimit         int                                     `json:"sampleLimit"`
		PodMetricsEndpoints []struct {
			Port, Path        string
			HonorLabels       bool
			Relabelings       []relabeling
			MetricRelabelings []relabeling
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// relabeling is one in the spelling of the operator.
type relabeling struct {
	Action       string   `json:"action"`
	SourceLabels []string `json:"sourceLabels"`
	Regex        string   `json:"regex"`
	TargetLabel  string   `json:"targetLabel"`
	Replacement  string   `json:"replacement"`
}

// native is the same in that of Prometheus.
func (r relabeling) native() map[string]any {
	out := map[string]any{}
	for key, value := range map[string]string{"action": r.Action, "regex": r.Regex,
		"target_label": r.TargetLabel, "replacement": r.Replacement} {
		if value != "" {
			out[key] = value
		}
	}
	if r.SourceLabels != nil {
		out["source_labels"] = r.SourceLabels
	}
	return out
}

// monitors are the PodMonitors: of the webhook, the guards and the agents.
func monitors(t *testing.T) (all []podMonitor) {
	t.Helper()
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(read(t, shipped+"monitors.yaml")), 4096); ; {
		var m podMonitor
		if err := documents.Decode(&m); err != nil {
			break
		}
		all = append(all, m)
	}
	if len(all) != 3 {
		t.Fatalf("monitors.yaml has %d PodMonitors, not 3", len(all))
	}
	return all
}

// configuration is what Prometheus' operator makes of the PodMonitors, as far as they go, but that each target is read every
// second.
func configuration(t *testing.T, kubeconfig string) string {
	t.Helper()
	var jobs []any
	for _, m := range monitors(t) {
		discovery := map[string]any{"role": "pod", "kubeconfig_file": kubeconfig}
		if !m.Spec.NamespaceSelector.Any {
			discovery["namespaces"] = map[string]any{"names": []string{m.Metadata.Namespace}}
		}
		for _, e := range m.Spec.PodMetricsEndpoints {
			jobs = append(jobs, map[string]any{
				"job_name": m.Metadata.Namespace + "/" + m.Metadata.Name, "metrics_path": e.Path,
				"honor_labels": e.HonorLabels, "sample_limit": m.Spec.SampleLimit,
				"kubernetes_sd_configs":  []any{discovery},
				"relabel_configs":        relabelings(m, e.Port, e.Relabelings),
				"metric_relabel_configs": natives(e.MetricRelabelings),
			})
		}
	}
	if len(jobs) != 3 {
		t.Fatalf("monitors.yaml has %d endpoints, not 3", len(jobs))
	}
	text, err := sigs.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "5s"},
		"rule_files": []string{"rules.yaml"}, "scrape_configs": jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// relabelings are those that the operator writes for any PodMonitor, and then its own.
func relabelings(m podMonitor, port string, own []relabeling) []map[string]any {
	const meta = "__meta_kubernetes_pod_"
	all := []relabeling{{Action: "drop", SourceLabels: []string{meta + "phase"}, Regex: "(Failed|Succeeded)"}}
	for name, value := range m.Spec.Selector.MatchLabels {
		all = append(all, relabeling{Action: "keep",
			SourceLabels: []string{meta + "label_" + strings.NewReplacer(".", "_", "/", "_").Replace(name)}, Regex: value})
	}
	if port != "" {
		all = append(all, relabeling{Action: "keep", SourceLabels: []string{meta + "container_port_name"}, Regex: port})
	}
	all = append(all,
		relabeling{SourceLabels: []string{"__meta_kubernetes_namespace"}, TargetLabel: "namespace"},
		relabeling{SourceLabels: []string{meta + "container_name"}, TargetLabel: "container"},
		relabeling{SourceLabels: []string{meta + "name"}, TargetLabel: "pod"})
	return natives(append(all, own...))
}

func natives(list []relabeling) (out []map[string]any) {
	for _, r := range list {
		out = append(out, r.native())
	}
	return out
}

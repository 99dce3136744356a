package observability

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

const customMetrics = "/apis/custom.metrics.k8s.io/v1beta1"

// metricsAdapter serves custom.metrics.k8s.io as Prometheus Adapter does by a rule of its configuration: the metrics of pods alone.
// The adapter itself is a third Kubernetes to compile.
type metricsAdapter struct {
	*testing.T
	rule       adapterRule
	prometheus *prometheus
	client     kubernetes.Interface
}

type adapterRule struct {
	SeriesQuery string `json:"seriesQuery"`
	Resources   struct {
		Overrides map[string]struct {
			Resource string `json:"resource"`
		} `json:"overrides"`
	} `json:"resources"`
	Name         struct{ Matches, As string } `json:"name"`
	MetricsQuery string                       `json:"metricsQuery"`
}

func newMetricsAdapter(t *testing.T, config string, p *prometheus, client kubernetes.Interface) *metricsAdapter {
	t.Helper()
	var file struct {
		Rules []adapterRule `json:"rules"`
	}
	if err := yaml.UnmarshalStrict([]byte(config), &file); err != nil || len(file.Rules) != 1 {
		t.Fatalf("%d rules: %v", len(file.Rules), err)
	}
	for label, of := range file.Rules[0].Resources.Overrides {
		if label != of.Resource {
			t.Fatalf("the label %s is a %s", label, of.Resource)
		}
	}
	return &metricsAdapter{t, file.Rules[0], p, client}
}

func (a *metricsAdapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, customMetrics+"/"), "/")
	var answer any
	var err error
	switch {
	case r.URL.Path == customMetrics:
		answer, err = a.resources()
	case len(path) == 5 && path[0] == "namespaces" && path[2] == "pods" && path[3] == "*":
		answer, err = a.values(r, path[1], path[4])
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		a.Logf("answer %s: %v", r.URL, err)
	}
}

// series returns the recorded series of each metric that the rule finds.
func (a *metricsAdapter) series() (map[string]string, error) {
	var found []map[string]string
	if err := a.prometheus.get("series", url.Values{"match[]": {a.rule.SeriesQuery}}, &found); err != nil {
		return nil, err
	}
	named, err := regexp.Compile(a.rule.Name.Matches)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, labels := range found {
		series := labels["__name__"]
		out[named.ReplaceAllString(series, a.rule.Name.As)] = series
	}
	return out, nil
}

// resources is the answer to discovery.
func (a *metricsAdapter) resources() (metav1.APIResourceList, error) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: "custom.metrics.k8s.io/v1beta1"}
	series, err := a.series()
	for metric := range series {
		list.APIResources = append(list.APIResources,
			metav1.APIResource{Name: "pods/" + metric, Namespaced: true, Kind: "MetricValueList", Verbs: metav1.Verbs{"get"}})
	}
	return list, err
}

// values returns a metric of the pods that the request selects.
func (a *metricsAdapter) values(r *http.Request, namespace, metric string) (any, error) {
	selected, err := a.client.CoreV1().Pods(namespace).List(r.Context(), metav1.ListOptions{LabelSelector: r.URL.Query().Get("labelSelector")})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range selected.Items {
		names = append(names, pod.Name)
	}
	series, err := a.series()
	if err != nil {
		return nil, err
	}
	query, err := template.New("query").Delims("<<", ">>").Parse(a.rule.MetricsQuery)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	err = query.Execute(&text, map[string]string{"Series": series[metric], "GroupBy": "pod",
		"LabelMatchers": "namespace=" + strconv.Quote(namespace) + ",pod=~" + strconv.Quote(strings.Join(names, "|"))})
	if err != nil {
		return nil, err
	}
	var found matrix
	if err := a.prometheus.get("query", url.Values{"query": {text.String()}}, &found); err != nil {
		return nil, err
	}
	items := []any{}
	for _, s := range found.series() {
		items = append(items, map[string]any{
			"describedObject": map[string]string{"kind": "Pod", "namespace": namespace, "name": s.Labels["pod"], "apiVersion": "v1"},
			"metricName":      metric, "timestamp": time.Now().UTC().Format(time.RFC3339), "value": strconv.Itoa(int(s.Points[0].Value*1000)) + "m",
		})
	}
	return map[string]any{"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta1",
		"metadata": map[string]any{}, "items": items}, nil
}

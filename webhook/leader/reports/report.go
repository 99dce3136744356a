package reports

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies"
)

// APIVersion is the API of policy reports.
const APIVersion = "openreports.io/v1alpha1"

// The one report of each namespace.
const (
	reportName     = "gpuslice-audit"
	reportSource   = "gpuslice"
	labelManagedBy = "app.kubernetes.io/managed-by" // its value is reportName
)

// Bounds of a report: the API server stores no object beyond about 1.5 MiB.
const (
	maxResults = 1000
	maxMessage = 500 // bytes
)

// Results that the API knows.
const (
	passed, failed, warned, erred, skipped = "pass", "fail", "warn", "error", "skip"
)

// Subject is an object, and the effect of enforce on it.
type Subject struct {
	Kind, Name            string
	Result, Rule, Message string
}

// Erred is the result of an object that cannot be evaluated.
const Erred = erred

// ResultOf is how reports call a decision. A pod that is sliced already passes.
func ResultOf(d policies.Decision, sliced bool) string {
	switch {
	case d.IfEnforced == policies.Denied:
		return failed
	case d.IfEnforced == policies.DevicesHidden:
		return warned
	case d.IfEnforced == policies.Mutated || sliced:
		return passed
	}
	return skipped
}

// Report is as much of a Report as gpuslice writes.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta      `json:"metadata"`
	Source          string                 `json:"source"`
	Scope           corev1.ObjectReference `json:"scope"`
	Configuration   reportConfiguration    `json:"configuration"`
	Summary         map[string]int         `json:"summary"`
	Results         []reportResult         `json:"results"`
}

type reportConfiguration struct {
	Limits struct {
		MaxResults int `json:"maxResults"`
	} `json:"limits"`
}

type reportResult struct {
	Policy    string                   `json:"policy"`
	Rule      string                   `json:"rule,omitempty"`
	Category  string                   `json:"category"`
	Timestamp metav1.Timestamp         `json:"timestamp"`
	Result    string                   `json:"result"`
	Scored    bool                     `json:"scored"`
	Resources []corev1.ObjectReference `json:"resources"`
	Message   string                   `json:"message,omitempty"`
}

// Of is the Report of a namespace, under a policy.
func Of(namespace, policy string, subjects []Subject, now time.Time) Report {
	r := Report{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "Report"}, Source: reportSource,
		Metadata: metav1.ObjectMeta{Name: reportName, Namespace: namespace, Labels: map[string]string{labelManagedBy: reportName}},
		Scope:    corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace},
		Summary:  map[string]int{passed: 0, failed: 0, warned: 0, erred: 0, skipped: 0}, Results: []reportResult{},
	}
	r.Configuration.Limits.MaxResults = maxResults
	for _, s := range subjects {
		r.Summary[s.Result]++
	}
	for _, result := range []string{failed, erred, warned, passed} { // the order in which a report that is too long keeps them
		for _, s := range subjects {
			if s.Result != result || len(r.Results) == maxResults {
				continue
			}
			r.Results = append(r.Results, reportResult{Policy: policy, Rule: s.Rule, Category: "GPU slices", Result: s.Result, Scored: true,
				Timestamp: metav1.Timestamp{Seconds: now.Unix()}, Message: shorten.Text(s.Message, maxMessage),
				Resources: []corev1.ObjectReference{{APIVersion: apiVersionOf(s.Kind), Kind: s.Kind, Namespace: namespace, Name: s.Name}}})
		}
	}
	return r
}

func apiVersionOf(kind string) string {
	switch kind {
	case "Pod":
		return "v1"
	case "Job", "CronJob":
		return "batch/v1"
	}
	return "apps/v1"
}

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies"
)

// The API of policy reports, and the one report of each namespace.
const (
	reportsAPI   = "openreports.io/v1alpha1"
	reportName   = "gpuslice-audit"
	reportSource = "gpuslice"
	ownReports   = "app.kubernetes.io/managed-by=gpuslice-audit"
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

// reportOrder is what a report that is too long keeps first.
func reportOrder() []string { return []string{failed, erred, warned, passed} }

// subject is an object, and what enforce would do to it.
type subject struct {
	kind, name            string
	result, rule, message string
}

// resultOf is how reports call a decision. A pod that is sliced already passes.
func resultOf(d policies.Decision, sliced bool) string {
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

// report is as much of a Report as gpuslice writes.
type report struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        reportMetadata         `json:"metadata"`
	Source          string                 `json:"source"`
	Scope           corev1.ObjectReference `json:"scope"`
	Configuration   reportConfiguration    `json:"configuration"`
	Summary         map[string]int         `json:"summary"`
	Results         []reportResult         `json:"results"`
}

type reportMetadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels,omitempty"`
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

// reportOf is the Report of a namespace.
func reportOf(item *audited, now time.Time) report {
	r := report{
		TypeMeta: metav1.TypeMeta{APIVersion: reportsAPI, Kind: "Report"}, Source: reportSource,
		Metadata: reportMetadata{Name: reportName, Namespace: item.Namespace, Labels: managedBy()},
		Scope:    corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: item.Namespace},
		Summary:  map[string]int{passed: 0, failed: 0, warned: 0, erred: 0, skipped: 0}, Results: []reportResult{},
	}
	r.Configuration.Limits.MaxResults = maxResults
	for _, s := range item.subjects {
		r.Summary[s.result]++
	}
	for _, result := range reportOrder() {
		for _, s := range item.subjects {
			if s.result != result || len(r.Results) == maxResults {
				continue
			}
			r.Results = append(r.Results, reportResult{Policy: item.Policy, Rule: s.rule, Category: "GPU slices", Result: s.result, Scored: true,
				Timestamp: metav1.Timestamp{Seconds: now.Unix()}, Message: shortened(s.message),
				Resources: []corev1.ObjectReference{{APIVersion: apiVersionOf(s.kind), Kind: s.kind, Namespace: item.Namespace, Name: s.name}}})
		}
	}
	return r
}

func managedBy() map[string]string {
	name, value, _ := strings.Cut(ownReports, "=")
	return map[string]string{name: value}
}

func shortened(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	return message
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

// writeReports writes the Report of each namespace that was audited. With all, it deletes those of namespaces that were not.
func (a *auditor) writeReports(ctx context.Context, all bool) error {
	client := a.client.Discovery().RESTClient()
	if err := client.Get().AbsPath("/apis/" + reportsAPI).Do(ctx).Error(); apierrors.IsNotFound(err) {
		return errors.New("the cluster has no API " + reportsAPI + ": install the CustomResourceDefinitions of openreports.io, or leave out --reports")
	} else if err != nil {
		return fmt.Errorf("find API %s: %w", reportsAPI, err)
	}
	for i := range a.items {
		if err := apply(ctx, client, reportOf(&a.items[i], time.Now())); err != nil {
			return err
		}
	}
	if !all {
		return nil
	}
	return a.deleteOld(ctx, client)
}

func reportPath(namespace, name string) string {
	path := "/apis/" + reportsAPI
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return strings.TrimSuffix(path+"/reports/"+name, "/")
}

func apply(ctx context.Context, client rest.Interface, r report) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	err = client.Patch(types.ApplyPatchType).AbsPath(reportPath(r.Metadata.Namespace, r.Metadata.Name)).
		Param("fieldManager", reportName).Param("force", "true").Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("write report of namespace %s: %w", r.Metadata.Namespace, err)
	}
	return nil
}

// deleteOld deletes reports that an earlier audit wrote about namespaces that this one does not cover. Where the policy cannot
// be used, it is still what was found last.
func (a *auditor) deleteOld(ctx context.Context, client rest.Interface) error {
	text, err := client.Get().AbsPath(reportPath("", "")).Param("labelSelector", ownReports).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("list reports: %w", err)
	}
	var list struct{ Items []report }
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("read reports: %w", err)
	}
	for _, r := range list.Items {
		if r.Metadata.Name != reportName || a.unknown(r.Metadata.Namespace) || slices.ContainsFunc(a.items, func(i audited) bool { return i.Namespace == r.Metadata.Namespace }) {
			continue
		}
		if err := client.Delete().AbsPath(reportPath(r.Metadata.Namespace, r.Metadata.Name)).Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete report of namespace %s: %w", r.Metadata.Namespace, err)
		}
	}
	return nil
}

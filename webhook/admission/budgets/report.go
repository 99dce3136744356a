package budgets

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// The reports that there are.
const (
	ReportQuota  = "quota"  // the usage of the namespace's quota: a Report
	ReportPolicy = "policy" // the policy in effect in the namespace: a PolicyReport
)

// CauseOf is the type of the cause, in the status of the denial, whose message is the report in JSON.
func CauseOf(report string) metav1.CauseType {
	return metav1.CauseType(api.AnnotationReport + "-" + report)
}

// PolicyReport is the policy in effect in a namespace.
type PolicyReport struct {
	Namespace string `json:"namespace"`
	Policy    string `json:"policy,omitempty"` // that governs the namespace; "": none does
	// Document is the policy, tightened by the namespace's own document: without its parts on other namespaces and on
	// pools.
	Document *config.Policy `json:"document,omitempty"`
	// Tenant is a document with the quota that the namespace's own sets beside it.
	Tenant *config.Policy `json:"tenant,omitempty"`
}

// ReadPolicyReport reads a PolicyReport: its documents are parsed as policies are.
func ReadPolicyReport(text []byte) (r PolicyReport, err error) {
	var raw struct {
		Namespace, Policy string
		Document, Tenant  json.RawMessage
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return r, fmt.Errorf("read the report: %w", err)
	}
	r.Namespace, r.Policy = raw.Namespace, raw.Policy
	for document, into := range map[*json.RawMessage]**config.Policy{&raw.Document: &r.Document, &raw.Tenant: &r.Tenant} {
		if *document == nil {
			continue
		}
		parsed, problems := config.Parse(raw.Policy, *document)
		if len(problems) > 0 {
			return r, fmt.Errorf("read policy %s: %w", raw.Policy, problems.ToAggregate())
		}
		*into = parsed
	}
	return r, nil
}

// maxFigures bounds a report: a quota may have a hundred parts, and a tenant's own as many.
const maxFigures = 200

// Report is the usage of a namespace's quota.
type Report struct {
	Namespace string `json:"namespace"`
	Policy    string `json:"policy,omitempty"` // that governs the namespace; "": none does
	Budget    string `json:"budget,omitempty"` // that its pods are counted in
	// Counted is true once the ledger has listed the pods of the budget's namespaces: until then, Used is too low.
	Counted bool           `json:"counted"`
	Figures []quota.Figure `json:"figures"`
	More    int            `json:"more,omitempty"` // figures that are left out
}

// NewReport is the report on a namespace whose pods are limited by the quota, and counted in the budget, whose
// ledger is state.
func NewReport(in policies.Input, budget ledger.Budget, limited quota.Quota, state ledger.State) Report {
	figures := state.Figures(limited)
	r := Report{Namespace: in.Namespace.Name, Policy: in.Policy.Name, Budget: budget.Key,
		Counted: state.Covers(budget.Namespaces), Figures: []quota.Figure{}}
	if more := len(figures) - maxFigures; more > 0 {
		figures, r.More = figures[:maxFigures], more
	}
	r.Figures = append(r.Figures, figures...)
	return r
}

// IsReportRequest reports whether a pod requests a report, which a dry run of it gets.
func IsReportRequest(pod *corev1.Pod) bool {
	_, asks := pod.Annotations[api.AnnotationReport]
	return asks
}

// AnswerReport answers the dry run of a pod that requests a report, by a denial: no other answer of a webhook carries
// more than a sentence to its client. Nothing is reserved, and a dry run creates nothing.
func (c *Checker) AnswerReport(ctx context.Context, in policies.Input) (review.Answer, *review.Fault) {
	kind := in.Pod.Annotations[api.AnnotationReport]
	if kind != ReportQuota && kind != ReportPolicy {
		return review.Denied(metav1.StatusReasonForbidden,
			fmt.Sprintf("%s: there is no report %q; write %q or %q", api.AnnotationReport, kind, ReportQuota, ReportPolicy)), nil
	}
	if in.PolicyError != nil {
		return review.Denied(metav1.StatusReasonForbidden, "the namespace's policy cannot be read: "+in.PolicyError.Error()), nil
	}
	if kind == ReportPolicy {
		r := newPolicyReport(in)
		return answered(kind, r.String(), r)
	}
	report, err := c.report(ctx, in)
	if err != nil {
		return tryAgain(err.Error(), maxRetryAfter), nil
	}
	return answered(kind, report.String(), report)
}

// answered is the denial that holds a report.
func answered(kind, message string, report any) (review.Answer, *review.Fault) {
	text, err := json.Marshal(report)
	if err != nil {
		return review.Answer{}, review.Faultf(http.StatusInternalServerError, "encode the report: %v", err)
	}
	answer := review.Denied(metav1.StatusReasonForbidden, message)
	answer.Denial.Causes = []metav1.StatusCause{{Type: CauseOf(kind), Message: string(text)}}
	return answer, nil
}

func newPolicyReport(in policies.Input) PolicyReport {
	r := PolicyReport{Namespace: in.Namespace.Name}
	if in.Policy == nil {
		return r
	}
	document := *in.Policy
	document.Namespaces, document.Pools = nil, config.PoolsSpec{}
	r.Policy, r.Document = in.Policy.Name, &document
	if q := in.Policy.TenantQuota; q != nil {
		r.Tenant = &config.Policy{APIVersion: config.APIVersion, Quota: *q}
	}
	return r
}

// String is the report for people.
func (r PolicyReport) String() string {
	if r.Policy == "" {
		return fmt.Sprintf("no gpuslice policy governs namespace %q, so its pods stay as they are", r.Namespace)
	}
	return fmt.Sprintf("policy %s governs namespace %q; gpuslice policy show -n %s shows it", r.Policy, r.Namespace, r.Namespace)
}

// report reads the report on the namespace of a pod.
func (c *Checker) report(ctx context.Context, in policies.Input) (Report, error) {
	none := Report{Namespace: in.Namespace.Name, Figures: []quota.Figure{}}
	if c == nil || in.Policy.Off() {
		return none, nil
	}
	counted := c.Budgets.For(in)
	var state ledger.State
	if len(counted.Limits.Limits) > 0 {
		var err error
		if state, err = c.Reserver.Read(ctx, counted.Budget.Key); err != nil {
			return none, err
		}
	}
	return NewReport(in, counted.Budget, counted.Limits, state), nil
}

// String is the report for people.
func (r Report) String() string {
	switch {
	case r.Policy == "":
		return fmt.Sprintf("no gpuslice policy governs namespace %q, so nothing limits what its pods hold together", r.Namespace)
	case len(r.Figures) == 0:
		return fmt.Sprintf("policy %s sets namespace %q no quota", r.Policy, r.Namespace)
	case !r.Counted:
		return fmt.Sprintf("the pods of namespace %q are not counted yet; retry in some seconds", r.Namespace)
	}
	return strings.Join(figureNotes(r.Figures), "; ")
}

// figureNotes are figures in words, a sentence for each limit:
//
//	quota team-a: memory 12Gi of 64Gi used, 2Gi reserved; slices 3 of 8 used
func figureNotes(figures []quota.Figure) (out []string) {
	for i := 0; i < len(figures); {
		end := i
		var parts []string
		for ; end < len(figures) && figures[end].Quota == figures[i].Quota; end++ {
			f := figures[end]
			part := f.Dimension + " " + f.Text(f.Used) + " of " + f.Text(f.Limit) + " used"
			if f.Reserved > 0 {
				part += ", " + f.Text(f.Reserved) + " reserved"
			}
			parts = append(parts, part)
		}
		out = append(out, "quota "+figures[i].Quota+": "+strings.Join(parts, "; "))
		i = end
	}
	return out
}

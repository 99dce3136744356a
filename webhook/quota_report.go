package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// CauseQuotaReport is the type of the cause, in the status of the refusal, whose message is a QuotaReport in JSON.
const CauseQuotaReport metav1.CauseType = policies.AnnotationReport + "-" + policies.ReportQuota

// maxFigures bounds a report: a quota may tell a hundred parts apart, and a tenant's own as many.
const maxFigures = 200

// QuotaReport says how the quota of a namespace stands.
type QuotaReport struct {
	Namespace string `json:"namespace"`
	Policy    string `json:"policy,omitempty"` // that governs the namespace; "": none does
	Budget    string `json:"budget,omitempty"` // that its pods are counted in
	// Counted says that the ledger knows the pods of the budget's namespaces: until it does, Used is too low.
	Counted bool              `json:"counted"`
	Figures []policies.Figure `json:"figures"`
	More    int               `json:"more,omitempty"` // figures that are left out
}

// NewQuotaReport is the report on a namespace whose pods are held against the quota, and counted in the budget, whose
// ledger is state.
func NewQuotaReport(in policies.Input, budget ledger.Budget, quota policies.Quota, state ledger.State) QuotaReport {
	figures := state.Figures(quota)
	r := QuotaReport{Namespace: in.Namespace.Name, Policy: in.Policy.Name, Budget: budget.Key, Counted: state.Covers(budget.Namespaces), Figures: []policies.Figure{}}
	if more := len(figures) - maxFigures; more > 0 {
		figures, r.More = figures[:maxFigures], more
	}
	r.Figures = append(r.Figures, figures...)
	return r
}

// asksReport says that a request is a question: the dry-run of a pod that says so.
func asksReport(req admission.Request, pod *corev1.Pod) bool {
	_, asks := pod.Annotations[policies.AnnotationReport]
	return asks && dryRun(req)
}

func dryRun(req admission.Request) bool { return req.DryRun != nil && *req.DryRun }

// tell answers a question by a refusal: that is the only answer of a webhook that carries more than a sentence to
// whoever asks. Nothing is reserved, and a dry-run creates nothing.
func (v *Verifier) tell(ctx context.Context, in policies.Input) admission.Response {
	response := admission.Denied("")
	response.Result.Code, response.Result.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	if asked := in.Pod.Annotations[policies.AnnotationReport]; asked != policies.ReportQuota {
		response.Result.Message = clean(fmt.Sprintf("%s: %q is no report that there is; write %q", policies.AnnotationReport, asked, policies.ReportQuota), maxMessage)
		return v.pods.respond(ctx, handlerVerify, leftAlone(whyAsked), response)
	}
	if in.PolicyError != nil {
		response.Result.Message = clean("the namespace's policy cannot be read: "+in.PolicyError.Error(), maxMessage)
		return v.pods.respond(ctx, handlerVerify, leftAlone(whyAsked), response)
	}
	report, err := v.quotaReport(ctx, in)
	if err != nil {
		return *tryAgain(ledger.Answer{RetryAfter: time.Second, Reason: err.Error()})
	}
	text, err := json.Marshal(report)
	if err != nil {
		return unanswered(http.StatusInternalServerError, fmt.Errorf("encode the report: %w", err))
	}
	response.Result.Message = clean(report.String(), maxMessage)
	response.Result.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: CauseQuotaReport, Message: string(text)}}}
	return v.pods.respond(ctx, handlerVerify, leftAlone(whyAsked), response)
}

func (v *Verifier) quotaReport(ctx context.Context, in policies.Input) (QuotaReport, error) {
	none := QuotaReport{Namespace: in.Namespace.Name, Figures: []policies.Figure{}}
	if v.quota == nil || in.Policy == nil || in.Policy.Mode == policies.ModeOff {
		return none, nil
	}
	budget, quota, _ := v.quota.Budgets.Budget(in)
	var state ledger.State
	if len(quota.Limits) > 0 {
		var err error
		if state, err = v.quota.Reserver.Read(ctx, budget.Key); err != nil {
			return none, err
		}
	}
	return NewQuotaReport(in, budget, quota, state), nil
}

// String is the report for people.
func (r QuotaReport) String() string {
	switch {
	case r.Policy == "":
		return fmt.Sprintf("no gpuslice policy governs namespace %q, so nothing limits what its pods hold together", r.Namespace)
	case len(r.Figures) == 0:
		return fmt.Sprintf("policy %s sets namespace %q no quota", r.Policy, r.Namespace)
	case !r.Counted:
		return fmt.Sprintf("the pods of namespace %q are not counted yet; ask again in some seconds", r.Namespace)
	}
	return strings.Join(policies.QuotaNotes(r.Figures), "; ")
}

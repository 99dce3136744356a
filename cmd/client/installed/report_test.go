package installed

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/webhook/admission/budgets"
)

func denial(message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403,
		Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
}

func TestReadReport(t *testing.T) {
	text, err := readReport(denial("quota ...", metav1.StatusCause{Type: "quota", Message: "other"},
		metav1.StatusCause{Type: budgets.CauseOf(budgets.ReportQuota), Message: `{"namespace":"a","policy":"p","budget":"namespace/a","counted":true,"figures":[{"quota":"a","dimension":"slices","limit":4,"used":1}]}`}), "a", budgets.ReportQuota)
	var report budgets.Report
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if err != nil || report.Budget != "namespace/a" || len(report.Figures) != 1 || report.Figures[0].Limit != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestReadReportOfNoAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"nobody":               {nil, "exempt or bypassed"},
		"another's denial":     {denial("admission webhook \"others.example.com\" denied the request"), "others.example.com"},
		"an answer out of use": {denial("", metav1.StatusCause{Type: budgets.CauseOf(budgets.ReportQuota), Message: "{"}), "cannot be read"},
		"an answer too long": {denial("long",
			metav1.StatusCause{Type: budgets.CauseOf(budgets.ReportQuota), Message: strings.Repeat("x", maxReport+1)}), "long"},
	} {
		if _, err := readReport(tt.err, "team-a", budgets.ReportQuota); !errors.Is(err, ErrUnanswered) ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

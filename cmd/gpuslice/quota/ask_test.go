package quota

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/webhook/budgets"
)

func denial(message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403, Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
}

func TestReportOf(t *testing.T) {
	report, err := reportOf(denial("quota ...", metav1.StatusCause{Type: "quota", Message: "other"},
		metav1.StatusCause{Type: budgets.CauseReport, Message: `{"namespace":"a","policy":"p","budget":"namespace/a","counted":true,"figures":[{"quota":"a","dimension":"slices","limit":4,"used":1}]}`}), "a")
	if err != nil || report.Budget != "namespace/a" || len(report.Figures) != 1 || report.Figures[0].Limit != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestReportOfNoAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"nobody":               {nil, "exempt or bypassed"},
		"another's denial":     {denial("admission webhook \"others.example.com\" denied the request"), "others.example.com"},
		"an answer out of use": {denial("", metav1.StatusCause{Type: budgets.CauseReport, Message: "{"}), "cannot be read"},
		"an answer too long":   {denial("long", metav1.StatusCause{Type: budgets.CauseReport, Message: strings.Repeat("x", maxAnswer+1)}), "long"},
	} {
		if _, err := reportOf(tt.err, "team-a"); !errors.Is(err, errUnanswered) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

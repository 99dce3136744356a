package webhook

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// maxProblem bounds the text of one problem, of which a document has 64 at most.
const maxProblem = 1024

// refusePolicy answers with every problem, each on a line of its own and as a cause that tools can read.
func refusePolicy(name string, problems []error) admission.Response {
	lines := []string{fmt.Sprintf("policy %s is not written, problems: %d", clean(name, maxProblem), len(problems))}
	details := &metav1.StatusDetails{}
	for _, problem := range problems {
		text := clean(problem.Error(), maxProblem)
		lines = append(lines, text)
		details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: text})
	}
	response := admission.Denied(strings.Join(lines, "\n"))
	response.Result.Code, response.Result.Reason, response.Result.Details = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, details
	return response
}

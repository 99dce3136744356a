package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
)

// The API server cuts a warning at 256 bytes and all of them at 4 KiB; kubectl prints each on its own line.
const (
	maxWarning  = 240
	maxWarnings = 10
	maxMessage  = 2048
)

// respond is the answer to a decision. patch is what turns the object into what was decided; one that is refused has none.
func respond(d policies.Decision, patch []jsonpatch.Operation) admission.Response {
	var response admission.Response
	switch {
	case d.Outcome == policies.Refused:
		response = refuse(http.StatusForbidden, metav1.StatusReasonForbidden, d)
	case len(patch) > 0:
		response = admission.Patched("", patch...)
	default:
		response = admission.Allowed("")
	}
	response.Warnings = warnings(d.Warnings)
	response.AuditAnnotations = audit(d)
	return response
}

// refuse answers with the decision's message, and with each violation as a cause that tools can read.
func refuse(code int32, reason metav1.StatusReason, d policies.Decision) admission.Response {
	response := admission.Denied(clean(d.Message(), maxMessage))
	response.Result.Code, response.Result.Reason = code, reason
	details := &metav1.StatusDetails{}
	for _, v := range d.Violations[:min(len(d.Violations), maxWarnings)] {
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(v.Rule), Message: clean(v.String(), maxMessage),
		})
	}
	response.Result.Details = details
	return response
}

// unanswered reports a fault that is not the object's: the endpoint turns it into an HTTP status.
func unanswered(code int32, err error) admission.Response {
	return admission.Errored(code, err)
}

// audit says what was decided, for the API server's audit log; it puts the webhook's name before each key.
func audit(d policies.Decision) map[string]string {
	annotations := map[string]string{"outcome": string(d.Outcome)}
	for key, value := range map[string]string{
		"would": string(d.Would), "reason": d.Reason(), "policy": d.Policy, "mode": string(d.Mode),
	} {
		if value != "" {
			annotations[key] = value
		}
	}
	return annotations
}

// warnings bounds the warnings in number and length. A long one becomes several lines, since what to do next stands at
// its end.
func warnings(texts []string) []string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, fold(clean(text, maxMessage), maxWarning)...)
	}
	if len(lines) <= maxWarnings {
		return lines
	}
	rest := len(lines) - maxWarnings + 1
	return append(lines[:maxWarnings-1:maxWarnings-1], "and "+strconv.Itoa(rest)+" more lines")
}

// fold breaks text at spaces into lines of at most that many bytes; a word that is longer is cut.
func fold(text string, most int) []string {
	var lines []string
	for len(text) > most {
		cut := strings.LastIndexByte(text[:most+1], ' ')
		if cut <= 0 {
			return append(lines, clean(text, most))
		}
		lines = append(lines, text[:cut])
		text = text[cut+1:]
	}
	return append(lines, text)
}

// clean makes text safe for a header and a terminal: nothing that is not printed, valid UTF-8, at most that many bytes.
func clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError { // a right-to-left override is no control character
			return ' '
		}
		return r
	}, text)
	if len(text) <= most {
		return text
	}
	const end = "..."
	cut := most - len(end)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + end
}

package review

import (
	"encoding/json"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/guard/shorten"
)

// Answer is about the object under review. The zero Answer admits it as it is.
type Answer struct {
	Denial   *Denial               // nil: the object is admitted
	Patch    []jsonpatch.Operation // to the object that is admitted
	Warnings []string
	Audit    map[string]string // for the API server's audit log; it puts the webhook's name before each key
}

// Denial is why an object is not admitted.
type Denial struct {
	Reason            metav1.StatusReason // Forbidden, Invalid or TooManyRequests
	Message           string
	Kind, Name        string               // of the object, which clients print with Invalid; "": they print none
	Causes            []metav1.StatusCause // the same for tools
	RetryAfterSeconds int32                // for clients that try again by themselves; 0: they do not
}

// Denied is an Answer that denies the object for a reason.
func Denied(reason metav1.StatusReason, message string) Answer {
	return Answer{Denial: &Denial{Reason: reason, Message: shorten.Line(message, MaxMessage)}}
}

// Response is the answer as it is sent. An error: the patch cannot be encoded.
func (a Answer) Response(uid types.UID) (*admissionv1.AdmissionResponse, error) {
	response := &admissionv1.AdmissionResponse{UID: uid, Warnings: a.Warnings, AuditAnnotations: a.Audit}
	if a.Denial != nil {
		response.Result = a.Denial.status()
		return response, nil
	}
	response.Allowed, response.Result = true, &metav1.Status{Code: http.StatusOK}
	if len(a.Patch) == 0 {
		return response, nil
	}
	operations := make([]operation, len(a.Patch))
	for i, op := range a.Patch {
		operations[i] = operation(op)
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	return response, nil
}

// operation is one of a patch without its own MarshalJSON, whose text the encoder would check and copy again.
type operation jsonpatch.Operation

// status is the denial as clients see it.
func (d *Denial) status() *metav1.Status {
	status := &metav1.Status{Code: http.StatusForbidden, Reason: d.Reason, Message: d.Message}
	switch d.Reason {
	case metav1.StatusReasonInvalid:
		status.Code = http.StatusUnprocessableEntity
	case metav1.StatusReasonTooManyRequests:
		status.Code = http.StatusTooManyRequests
	}
	if len(d.Causes) > 0 || d.RetryAfterSeconds > 0 {
		status.Details = &metav1.StatusDetails{Kind: d.Kind, Name: d.Name, Causes: d.Causes, RetryAfterSeconds: d.RetryAfterSeconds}
	}
	return status
}

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Owners is told of refused pods. It must not block.
type Owners interface {
	Denied(pod metav1.Object, text string)
}

// maxTold bounds the pods that are read once more for their owners, after the decision and before its answer.
const maxTold = 256 << 10

// TellOwners is a handler that answers as next does, and tells owners of each new pod that it refuses. A dry run is not
// told.
func TellOwners(next admission.Handler, owners Owners) admission.Handler {
	return telling{next, owners}
}

type telling struct {
	admission.Handler
	owners Owners
}

// Handle implements admission.Handler.
func (t telling) Handle(ctx context.Context, req admission.Request) admission.Response {
	response := t.Handler.Handle(ctx, req)
	if refused(response) && req.Operation == admissionv1.Create && req.SubResource == "" && !dryRun(req) && len(req.Object.Raw) <= maxTold {
		var pod metav1.PartialObjectMetadata
		if json.Unmarshal(req.Object.Raw, &pod) == nil {
			pod.Namespace = req.Namespace
			t.owners.Denied(&pod, response.Result.Message)
		}
	}
	return response
}

// TooLarge implements Oversized where next does. Owners are not told: they stand in what was not read.
func (t telling) TooLarge(ctx context.Context, req admission.Request) admission.Response {
	if next, ok := t.Handler.(Oversized); ok {
		return next.TooLarge(ctx, req)
	}
	return unanswered(http.StatusRequestEntityTooLarge, errors.New("the review is too large"))
}

// refused says that the object was refused, and not that nothing could be said of it.
func refused(r admission.Response) bool {
	return !r.Allowed && r.Result != nil && (r.Result.Code == http.StatusForbidden || r.Result.Code == http.StatusUnprocessableEntity)
}

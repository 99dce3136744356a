package webhook

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
)

// ephemeralContainers is the subresource by which kubectl debug adds containers to a live pod.
const ephemeralContainers = "ephemeralcontainers"

// ephemeral gives no device to the ephemeral containers that an update adds.
func (p *Pods) ephemeral(ctx context.Context, req admission.Request) admission.Response {
	if len(req.Object.Raw) == 0 || len(req.OldObject.Raw) == 0 {
		return unanswered(http.StatusBadRequest, errors.New("the request holds no object, or no old one"))
	}
	in, err := p.source.Input(ctx, req.Namespace)
	if err != nil {
		return unanswered(http.StatusServiceUnavailable, err)
	}
	old, tooMuch, err := policies.DecodePod(req.OldObject.Raw)
	if err != nil || tooMuch != nil {
		return admission.Allowed("")
	}
	updated, tooMuch, err := policies.DecodePod(req.Object.Raw)
	if err != nil || tooMuch != nil {
		return admission.Allowed("")
	}
	in.Pod = updated.Pod
	return p.putRight(ctx, handlerEphemeral, updated, policies.VoidEphemeral(in, old.Pod))
}

package webhook

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
)

// update puts back what is gpuslice's in a live pod.
func (p *Pods) update(ctx context.Context, req admission.Request) admission.Response {
	change, answer := p.changeOf(req)
	if answer != nil {
		return *answer
	}
	d, patch, err := policies.Update(change, p.governed(ctx, req))
	if err != nil {
		return unanswered(http.StatusServiceUnavailable, err)
	}
	handler := handlerUpdate
	if req.SubResource == policies.SubresourceEphemeral {
		handler = handlerEphemeral
	}
	return p.respond(ctx, handler, d, respond(d, patch))
}

// update refuses what would change gpuslice's part of a live pod, and what is added to it that reaches out of its slice.
func (v *Verifier) update(ctx context.Context, req admission.Request) admission.Response {
	change, answer := v.pods.changeOf(req)
	if answer != nil {
		return *answer
	}
	d, err := policies.VerifyUpdate(change, v.pods.governed(ctx, req))
	if err != nil {
		return unanswered(http.StatusServiceUnavailable, err)
	}
	return v.pods.respond(ctx, handlerVerifyUpdate, d, respond(d, nil))
}

// changeOf is the update that is reviewed, or the answer to one that is none of ours.
func (p *Pods) changeOf(req admission.Request) (policies.Change, *admission.Response) {
	change := policies.Change{
		Old: req.OldObject.Raw, New: req.Object.Raw, Subresource: req.SubResource,
		Ours: req.UserInfo.Username == "system:serviceaccount:"+p.system+":"+ServiceAccount,
	}
	var answer admission.Response
	switch {
	case len(change.Old) == 0 || len(change.New) == 0:
		answer = unanswered(http.StatusBadRequest, errors.New("the request holds no object, or no old one"))
	case !change.Concerns():
		answer = admission.Allowed("")
	default:
		return change, nil
	}
	return change, &answer
}

// governed asks the source for what governs the pod, once its answer is needed.
func (p *Pods) governed(ctx context.Context, req admission.Request) policies.Governed {
	return func() (policies.Input, error) { return p.source.Input(ctx, req.Namespace) }
}

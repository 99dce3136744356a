package pods

import (
	"context"
	"net/http"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// update restores gpuslice's own fields in a live pod.
func (m *Mutator) update(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	change, fault := m.change(req)
	if fault != nil || !change.Concerns() { // most updates do not: their namespace is not even read
		return review.Answer{}, fault
	}
	d, patch, err := change.Mutate(m.governed(ctx, req))
	if err != nil {
		return review.Answer{}, review.Faultf(http.StatusServiceUnavailable, "%v", err)
	}
	handler := handlerUpdate
	if req.SubResource == "ephemeralcontainers" {
		handler = handlerEphemeral
	}
	m.record(ctx, handler, d)
	return review.OfDecision(d, patch), nil
}

// update denies changes of gpuslice's part of a live pod, and additions that reach out of its slice.
func (v *Verifier) update(ctx context.Context, req review.Request) (review.Answer, *review.Fault) {
	change, fault := v.change(req)
	if fault != nil || !change.Concerns() {
		return review.Answer{}, fault
	}
	d, err := change.Verify(v.governed(ctx, req))
	if err != nil {
		return review.Answer{}, review.Faultf(http.StatusServiceUnavailable, "%v", err)
	}
	v.record(ctx, handlerVerifyUpdate, d)
	return review.OfDecision(d, nil), nil
}

// change is the update that is reviewed.
func (r reviewer) change(req review.Request) (policies.Change, *review.Fault) {
	if len(req.Object.Raw) == 0 || len(req.OldObject.Raw) == 0 {
		return policies.Change{}, review.Faultf(http.StatusBadRequest, "the request has no object, or no old one")
	}
	return policies.Change{
		Old: req.OldObject.Raw, New: req.Object.Raw, Subresource: req.SubResource,
		Ours: r.ours(req),
	}, nil
}

// ours reports whether gpuslice itself writes.
func (r reviewer) ours(req review.Request) bool {
	return req.UserInfo.Username == "system:serviceaccount:"+r.Namespace+":"+ServiceAccount
}

// governed reads the input of the pod's namespace from the source, once it is needed.
func (r reviewer) governed(ctx context.Context, req review.Request) func() (policies.Input, error) {
	return func() (policies.Input, error) { return r.Source.Input(ctx, req.Namespace) }
}

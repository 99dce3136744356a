package webhook

import (
	"context"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
)

// Subresources by which a live pod changes where its spec cannot be updated. A rule for pods does not match them.
const (
	ephemeralContainers = "ephemeralcontainers" // kubectl debug adds containers
	resize              = "resize"              // processor time and memory
)

// ephemeral gives no device to the ephemeral containers that an update adds.
func (p *Pods) ephemeral(ctx context.Context, req admission.Request) admission.Response {
	in, old, updated, answer := p.updateOf(ctx, req)
	if answer != nil {
		return *answer
	}
	return p.putRight(ctx, handlerEphemeral, updated, policies.VoidEphemeral(in, old.Pod))
}

// subresource refuses ephemeral containers that reach out of a slice, and other resources for the guard.
func (v *Verifier) subresource(ctx context.Context, req admission.Request) admission.Response {
	if req.Operation != admissionv1.Update || req.SubResource != ephemeralContainers && req.SubResource != resize {
		return admission.Allowed("")
	}
	in, old, updated, answer := v.pods.updateOf(ctx, req)
	if answer != nil {
		return *answer
	}
	var found []policies.Violation
	if req.SubResource == resize {
		found = policies.CheckResize(old.Pod, updated.Pod)
	} else {
		found = policies.CheckEphemeral(in, old.Pod)
	}
	if len(found) > 0 {
		d := policies.Judge(in, found...)
		return v.pods.respond(ctx, handlerVerifyUpdate, d, respond(d, nil))
	}
	return v.pods.respond(ctx, handlerVerifyUpdate, leftAlone(whyUnchanged), admission.Allowed(""))
}

// updateOf reads an update of a pod, with what governs its namespace. An update that cannot be read passes: the pod is
// there already, and one that passes by is the API server's own to refuse.
func (p *Pods) updateOf(ctx context.Context, req admission.Request) (in policies.Input, old, updated policies.RawPod, answer *admission.Response) {
	give := func(r admission.Response) (policies.Input, policies.RawPod, policies.RawPod, *admission.Response) {
		return in, old, updated, &r
	}
	if len(req.Object.Raw) == 0 || len(req.OldObject.Raw) == 0 {
		return give(unanswered(http.StatusBadRequest, errors.New("the request holds no object, or no old one")))
	}
	in, err := p.source.Input(ctx, req.Namespace)
	if err != nil {
		return give(unanswered(http.StatusServiceUnavailable, err))
	}
	for _, one := range []struct {
		raw []byte
		pod *policies.RawPod
	}{{req.OldObject.Raw, &old}, {req.Object.Raw, &updated}} {
		read, tooMuch, err := policies.DecodePod(one.raw)
		if err != nil || tooMuch != nil {
			return give(admission.Allowed(""))
		}
		*one.pod = read
	}
	in.Pod = updated.Pod
	return in, old, updated, nil
}

package webhook

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpuslice/gpuslice/policies"
)

// update puts back what is gpuslice's in a pod that holds a Promise. Nothing is decided again, and whatever cannot be
// read here passes: an update must never block a finalizer, a scheduling gate or a deletion.
func (p *Pods) update(ctx context.Context, req admission.Request) admission.Response {
	if len(req.Object.Raw) == 0 || len(req.OldObject.Raw) == 0 {
		return unanswered(http.StatusBadRequest, errors.New("the request holds no object, or no old one"))
	}
	if !bytes.Contains(req.OldObject.Raw, []byte(policies.AnnotationPromise)) {
		return p.updateVoided(ctx, req)
	}
	old, tooMuch, err := policies.DecodePod(req.OldObject.Raw)
	if err != nil || tooMuch != nil {
		return admission.Allowed("")
	}
	updated, tooMuch, err := policies.DecodePod(req.Object.Raw)
	if err != nil || tooMuch != nil || updated.Pod.DeletionTimestamp != nil {
		return admission.Allowed("")
	}
	restored, violations := policies.Restore(p.ownWrites(req, old.Pod, updated.Pod), updated.Pod)
	if len(violations) > 0 {
		return p.objected(ctx, req.Namespace, violations, policies.Patch(updated.Tree, updated.Pod, restored))
	}
	return p.putRight(ctx, handlerUpdate, updated, restored)
}

// updateVoided puts back the one thing that is gpuslice's in a pod without slices: whether it chooses its devices.
func (p *Pods) updateVoided(ctx context.Context, req admission.Request) admission.Response {
	named := []byte(policies.VarVisibleDevices)
	if !bytes.Contains(req.Object.Raw, named) && !bytes.Contains(req.OldObject.Raw, named) {
		return admission.Allowed("")
	}
	in, old, updated, answer := p.updateOf(ctx, req)
	if answer != nil {
		return *answer
	}
	return p.putRight(ctx, handlerUpdate, updated, policies.RestoreDevices(in, old.Pod))
}

// putRight answers an update with what makes it the pod that it should be.
func (p *Pods) putRight(ctx context.Context, handler string, updated policies.RawPod, after *corev1.Pod) admission.Response {
	patch := policies.Patch(updated.Tree, updated.Pod, after)
	d := leftAlone(whyUnchanged)
	if len(patch) > 0 {
		d.Outcome, d.Would = policies.Rewritten, policies.Rewritten
	}
	return p.respond(ctx, handler, d, respond(d, patch))
}

// ownWrites is the old pod with what the writer may change of gpuslice's as the new one has it: gpuslice's own
// ServiceAccount writes what is observed, and signs the same words with another key; nobody else writes anything.
func (p *Pods) ownWrites(req admission.Request, old, updated *corev1.Pod) *corev1.Pod {
	if req.UserInfo.Username != "system:serviceaccount:"+p.system+":"+ServiceAccount {
		return old
	}
	out := old.DeepCopy()
	delete(out.Annotations, policies.AnnotationObserved)
	if observed, ok := updated.Annotations[policies.AnnotationObserved]; ok {
		out.Annotations[policies.AnnotationObserved] = observed
	}
	if signed := updated.Annotations[policies.AnnotationPromise]; policies.Unsigned(signed) == policies.Unsigned(old.Annotations[policies.AnnotationPromise]) {
		out.Annotations[policies.AnnotationPromise] = signed
	}
	return out
}

// objected answers an update that changes what may not change. A namespace that no policy governs any more is not held
// to it. An update that passes all the same is put right like any other.
func (p *Pods) objected(ctx context.Context, namespace string, violations []policies.Violation, patch []jsonpatch.Operation) admission.Response {
	in, err := p.source.Input(ctx, namespace)
	if err != nil {
		return unanswered(http.StatusServiceUnavailable, err)
	}
	d := policies.Judge(in, violations...)
	response := respond(d, nil)
	if d.Outcome != policies.Refused && len(patch) > 0 {
		response.Patches = patch
	}
	return p.respond(ctx, handlerUpdate, d, response)
}

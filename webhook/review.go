package webhook

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"
)

// maxUID bounds what is echoed into the answer and the log; the API server sends 36 characters.
const maxUID = 128

// decodeReview reads an AdmissionReview of version v1 that holds a request with a uid. Other versions are an error: the
// webhook configurations offer v1 alone.
func decodeReview(body []byte) (admission.Request, error) {
	var review admissionv1.AdmissionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil {
		return admission.Request{}, fmt.Errorf("read AdmissionReview: %w", err)
	}
	if want := admissionv1.SchemeGroupVersion.String(); review.APIVersion != want || review.Kind != "AdmissionReview" {
		return admission.Request{}, fmt.Errorf("only AdmissionReview of %s is answered here", want)
	}
	switch {
	case review.Request == nil:
		return admission.Request{}, errors.New("the AdmissionReview holds no request")
	case review.Request.UID == "" || len(review.Request.UID) > maxUID:
		return admission.Request{}, errors.New("the request has no usable uid")
	}
	return admission.Request{AdmissionRequest: *review.Request}, nil
}

// answer is the AdmissionReview that carries a response back.
func answer(response admission.Response) admissionv1.AdmissionReview {
	review := admissionv1.AdmissionReview{Response: &response.AdmissionResponse}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	return review
}

package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// maxUID bounds the UID, which the answer and the log repeat; the API server sends 36 characters.
const maxUID = 128

// decodeReview reads an AdmissionReview of version v1 that holds a request with a uid. Other versions are an error: the
// webhook configurations offer v1 alone.
func decodeReview(body []byte) (review.Request, error) {
	var read admissionv1.AdmissionReview
	left, object, old := cutObjects(body)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(left, &read); err != nil {
		return review.Request{}, fmt.Errorf("read AdmissionReview: %w", err)
	}
	if want := admissionv1.SchemeGroupVersion.String(); read.APIVersion != want || read.Kind != "AdmissionReview" {
		return review.Request{}, fmt.Errorf("only AdmissionReview of %s is answered here", want)
	}
	switch {
	case read.Request == nil:
		return review.Request{}, errors.New("the AdmissionReview holds no request")
	case read.Request.UID == "" || len(read.Request.UID) > maxUID:
		return review.Request{}, errors.New("the request has no usable uid")
	}
	// A new object is read by its handler. A changed one may be admitted unread.
	created := read.Request.Operation == admissionv1.Create && read.Request.SubResource == ""
	if old != nil && !json.Valid(old) || object != nil && !created && !json.Valid(object) {
		return review.Request{}, errors.New("read AdmissionReview: an object under review is no JSON")
	}
	if object != nil {
		read.Request.Object.Raw = object
	}
	if old != nil {
		read.Request.OldObject.Raw = old
	}
	return *read.Request, nil
}

// decodeHead reads the names of the object from a review's beginning: all that the API server writes before it.
func decodeHead(head []byte) (review.Request, bool) {
	var request review.Request
	d := json.NewDecoder(bytes.NewReader(head))
	if !into(d, "request") {
		return request, false
	}
	fields := map[string]any{
		"uid": &request.UID, "kind": &request.Kind, "subResource": &request.SubResource,
		"namespace": &request.Namespace, "operation": &request.Operation, "userInfo": &request.UserInfo,
	}
	for {
		key, err := d.Token()
		if err != nil || key == "object" || key == "oldObject" {
			return request, request.UID != "" && len(request.UID) <= maxUID
		}
		name, _ := key.(string)
		var skipped json.RawMessage
		field, ok := fields[name]
		if !ok {
			field = &skipped
		}
		if d.Decode(field) != nil {
			return request, request.UID != "" && len(request.UID) <= maxUID
		}
	}
}

// into steps into the object under the key of the document's top level.
func into(d *json.Decoder, key string) bool {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for {
		name, err := d.Token()
		if err != nil {
			return false
		}
		if name == key {
			t, err := d.Token()
			return err == nil && t == json.Delim('{')
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return false
		}
	}
}

// encodeReview is the AdmissionReview that carries a response back.
func encodeReview(response *admissionv1.AdmissionResponse) admissionv1.AdmissionReview {
	out := admissionv1.AdmissionReview{Response: response}
	out.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	return out
}

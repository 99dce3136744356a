package server

import (
	"bytes"
	"encoding/json"

	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

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
		if !ok { // Decode has to pass the value
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

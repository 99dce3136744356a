package preview

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	kjson "sigs.k8s.io/json"
)

// withoutName takes the name, and fields of stored objects, from an object that is to be created as a dry-run. It
// returns the name.
func withoutName(raw json.RawMessage) (json.RawMessage, string, error) {
	object, metadata, err := parts(raw)
	if err != nil {
		return nil, "", err
	}
	name, _ := metadata["name"].(string)
	if name != "" {
		delete(metadata, "name")
		metadata["generateName"] = name + "-"
	}
	text, err := unstored(object, metadata)
	return text, name, err
}

// restoreName gives an object that came back from a dry-run its name again, and removes the API server's additions to
// everything.
func restoreName(raw json.RawMessage, name string) (json.RawMessage, error) {
	object, metadata, err := parts(raw)
	if err != nil {
		return nil, err
	}
	if delete(metadata, "name"); name != "" {
		metadata["name"] = name
		delete(metadata, "generateName")
	}
	return unstored(object, metadata)
}

// unstored encodes an object without the fields that the API server writes.
func unstored(object, metadata map[string]any) (json.RawMessage, error) {
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink", "ownerReferences"} {
		delete(metadata, key)
	}
	delete(object, "status")
	return json.Marshal(object)
}

func parts(raw json.RawMessage) (object, metadata map[string]any, err error) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, nil, fmt.Errorf("read the object: %w", err)
	}
	metadata, _ = object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	return object, metadata, nil
}

// withoutServerDefaults leaves out of after the defaults that before does not set: the API server's additions to every
// pod hide the webhooks' changes.
func withoutServerDefaults(before, after json.RawMessage) (json.RawMessage, error) {
	a, _, err := parts(before)
	if err != nil {
		return nil, err
	}
	b, _, err := parts(after)
	if err != nil {
		return nil, err
	}
	return json.Marshal(dropDefaults(a, b))
}

// dropDefaults returns after without the defaults that before lacks. Items of lists belong together by name, else by place.
func dropDefaults(before, after any) any {
	switch after := after.(type) {
	case map[string]any:
		had, _ := before.(map[string]any)
		for key, value := range after {
			old, there := had[key]
			sidecar := key == "restartPolicy" && after["containers"] == nil
			if !there && !sidecar && isDefault(key, value) {
				delete(after, key)
				continue
			}
			after[key] = dropDefaults(old, value)
			if empty, is := after[key].([]any); is && len(empty) == 0 && !there {
				delete(after, key)
			}
		}
		return after
	case []any:
		had, _ := before.([]any)
		kept := []any{}
		for i, item := range after {
			if old := counterpart(had, i, item); old != nil || !addedByServer(item) {
				kept = append(kept, dropDefaults(old, item))
			}
		}
		return kept
	}
	return after
}

// counterpart is the item of a list that one of a later list came from; nil: none.
func counterpart(list []any, at int, item any) any {
	if named, ok := item.(map[string]any); ok && named["name"] != nil {
		for _, candidate := range list {
			if old, ok := candidate.(map[string]any); ok && old["name"] == named["name"] {
				return old
			}
		}
		return nil
	}
	if at < len(list) {
		return list[at]
	}
	return nil
}

// isDefault reports whether the API server gives a field this value in every pod that does not set it.
func isDefault(key string, value any) bool {
	if key == "resources" || key == "securityContext" {
		return reflect.DeepEqual(value, map[string]any{})
	}
	defaults := map[string]any{
		"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler", "enableServiceLinks": true,
		"terminationGracePeriodSeconds": int64(30), "preemptionPolicy": "PreemptLowerPriority", "priority": int64(0),
		"serviceAccount": "default", "serviceAccountName": "default",
		"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
		"imagePullPolicy": "IfNotPresent", "successThreshold": int64(1), "failureThreshold": int64(3),
	}
	standard, known := defaults[key]
	return known && value == standard
}

// addedByServer reports whether the API server adds an item of a list to every pod: its token, and tolerations of a node
// that fails for a moment.
func addedByServer(item any) bool {
	object, ok := item.(map[string]any)
	if !ok {
		return false
	}
	name, _ := object["name"].(string)
	key, _ := object["key"].(string)
	return strings.HasPrefix(name, "kube-api-access-") ||
		object["tolerationSeconds"] == int64(300) && strings.HasPrefix(key, "node.kubernetes.io/")
}

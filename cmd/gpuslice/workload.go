package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// template is the pod template of a workload.
type template struct {
	pointer  string // where it stands, a JSON pointer
	metadata json.RawMessage
	spec     json.RawMessage
}

// templateOf finds the pod template of a workload: where Kubernetes' own kinds have it, and other kinds' as far as they
// follow them.
func templateOf(raw json.RawMessage) (template, bool) {
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		at := raw
		for _, key := range path {
			at = member(at, key)
		}
		t := template{pointer: "/" + strings.Join(path, "/"), metadata: member(at, "metadata"), spec: member(at, "spec")}
		var containers []json.RawMessage
		if json.Unmarshal(member(t.spec, "containers"), &containers) == nil && len(containers) > 0 {
			return t, true
		}
	}
	return template{}, false
}

// member returns an object's member, or nil.
func member(raw json.RawMessage, key string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members[key]
}

// pod is the pod that the workload's controller would create, as JSON.
func (t template) pod(owner object) (json.RawMessage, error) {
	metadata := map[string]json.RawMessage{}
	if t.metadata != nil {
		if err := json.Unmarshal(t.metadata, &metadata); err != nil {
			return nil, fmt.Errorf("read %s/metadata: %w", t.pointer, err)
		}
	}
	if metadata == nil { // written as null
		metadata = map[string]json.RawMessage{}
	}
	delete(metadata, "name") // controllers name their pods themselves
	name, err := json.Marshal(owner.name + "-")
	if err != nil {
		return nil, fmt.Errorf("encode name: %w", err)
	}
	metadata["generateName"] = name
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": t.spec})
}

// graft returns the workload with the template of pod, what the template alone says kept.
func (t template) graft(workload, pod json.RawMessage) (json.RawMessage, error) {
	var after struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
		Spec     json.RawMessage            `json:"spec"`
	}
	if err := json.Unmarshal(pod, &after); err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	delete(after.Metadata, "generateName")
	for _, key := range []string{"name", "generateName"} {
		if value := member(t.metadata, key); value != nil {
			after.Metadata[key] = value
		}
	}
	ops := []jsonpatch.Operation{jsonpatch.NewOperation("replace", t.pointer+"/spec", after.Spec)}
	if len(after.Metadata) > 0 {
		ops = append(ops, jsonpatch.NewOperation("add", t.pointer+"/metadata", after.Metadata))
	}
	return patched(workload, ops)
}

// builtIn says that the kind is one whose template the API server validates itself.
func (o object) builtIn() bool {
	group, _, grouped := strings.Cut(o.apiVersion, "/")
	switch {
	case !grouped:
		return o.kind == "ReplicationController"
	case group == "apps":
		return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, o.kind)
	}
	return group == "batch" && (o.kind == "Job" || o.kind == "CronJob")
}

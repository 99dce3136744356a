package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	patch "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/cli"
)

// Template is the pod template of a workload.
type Template struct {
	pointer  string // where it stands, a JSON pointer
	metadata json.RawMessage
	spec     json.RawMessage
}

// TemplateOf finds the pod template of a workload: where Kubernetes' own kinds have it, and other kinds' as far as they
// follow them.
func TemplateOf(raw json.RawMessage) (Template, bool) {
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		at := raw
		for _, key := range path {
			at = member(at, key)
		}
		t := Template{pointer: "/" + strings.Join(path, "/"), metadata: member(at, "metadata"), spec: member(at, "spec")}
		if t.hasContainers() {
			return t, true
		}
	}
	return Template{}, false
}

// TemplatesIn finds all pod templates of an object, wherever a kind has them: what has containers in its spec, in the order of
// their paths.
func TemplatesIn(raw json.RawMessage) []Template { return templatesUnder(raw, "") }

func templatesUnder(raw json.RawMessage, pointer string) (found []Template) {
	t := Template{pointer: pointer, metadata: member(raw, "metadata"), spec: member(raw, "spec")}
	if pointer != "" && t.hasContainers() {
		return []Template{t}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		for _, key := range slices.Sorted(maps.Keys(members)) {
			found = append(found, templatesUnder(members[key], pointer+"/"+pointerKey.Replace(key))...)
		}
		return found
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) == nil {
		for i, item := range items {
			found = append(found, templatesUnder(item, pointer+"/"+strconv.Itoa(i))...)
		}
	}
	return found
}

// pointerKey writes a key into a JSON pointer.
var pointerKey = strings.NewReplacer("~", "~0", "/", "~1")

func (t Template) hasContainers() bool {
	var containers []json.RawMessage
	return json.Unmarshal(member(t.spec, "containers"), &containers) == nil && len(containers) > 0
}

// member returns an object's member, or nil.
func member(raw json.RawMessage, key string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members[key]
}

// Pod returns the pod that the workload's controller would create, as JSON.
func (t Template) Pod(owner Object) (json.RawMessage, error) {
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
	name, err := json.Marshal(owner.Name + "-")
	if err != nil {
		return nil, fmt.Errorf("encode name: %w", err)
	}
	metadata["generateName"] = name
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": t.spec})
}

// Graft returns the workload with the template of pod, what the template alone says kept.
func (t Template) Graft(workload, pod json.RawMessage) (json.RawMessage, error) {
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
	return Patch(workload, ops)
}

// BuiltIn reports whether the kind is one whose template the API server validates itself.
func (o Object) BuiltIn() bool {
	group, _, grouped := strings.Cut(o.APIVersion, "/")
	switch {
	case !grouped:
		return o.Kind == "ReplicationController"
	case group == "apps":
		return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, o.Kind)
	}
	return group == "batch" && (o.Kind == "Job" || o.Kind == "CronJob")
}

// Patch applies operations to raw. What they do not name stays as it is written.
func Patch(raw json.RawMessage, ops []jsonpatch.Operation) (json.RawMessage, error) {
	if len(ops) == 0 {
		return raw, nil
	}
	text, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("%w: encode patch: %w", cli.ErrInternal, err)
	}
	decoded, err := patch.DecodePatch(text)
	if err != nil {
		return nil, fmt.Errorf("%w: read patch: %w", cli.ErrInternal, err)
	}
	after, err := decoded.Apply(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: apply patch: %w", cli.ErrInternal, err)
	}
	return after, nil
}

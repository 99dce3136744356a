package manifest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	patch "github.com/evanphx/json-patch/v5"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/gpuslice/gpuslice/cmd/client/problem"
)

// Template is the pod template of a workload.
type Template struct {
	pointer  string // where it is, a JSON pointer
	metadata json.RawMessage
	spec     json.RawMessage
	bare     bool // the pod's spec is at pointer itself
	pods     int  // that the controller runs at once, as far as the numbers beside it show
	partial  bool // a container that the controller completes is there: nothing can be written back
}

// Path is where the template is: "spec.workerGroupSpecs[0].template".
func (t Template) Path() string {
	var path strings.Builder
	for key := range strings.SplitSeq(strings.TrimPrefix(t.pointer, "/"), "/") {
		switch _, err := strconv.Atoi(key); {
		case err == nil:
			path.WriteString("[" + key + "]")
		case path.Len() > 0:
			path.WriteString("." + keyOfPointer.Replace(key))
		default:
			path.WriteString(keyOfPointer.Replace(key))
		}
	}
	return path.String()
}

// Pods is how many pods of the template run at once, as far as the replicas, or the parallelism, beside it show: one, if there are none.
func (t Template) Pods() int { return t.pods }

// Partial reports whether the controller completes the template, its image at least.
func (t Template) Partial() bool { return t.partial }

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
	if owner.inherited() {
		if err := inherit(metadata, member(owner.Raw, "metadata")); err != nil {
			return nil, fmt.Errorf("read metadata: %w", err)
		}
	}
	delete(metadata, "name") // controllers name their pods themselves
	name, err := json.Marshal(owner.Name + "-")
	if err != nil {
		return nil, fmt.Errorf("encode name: %w", err)
	}
	metadata["generateName"] = name
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": t.spec})
}

// inherit adds the labels and annotations of an owner that metadata does not set.
func inherit(metadata map[string]json.RawMessage, owner json.RawMessage) error {
	for _, key := range []string{"labels", "annotations"} {
		all := map[string]json.RawMessage{}
		for _, from := range []json.RawMessage{member(owner, key), metadata[key]} {
			if from == nil {
				continue
			}
			if err := json.Unmarshal(from, &all); err != nil {
				return err
			}
		}
		if len(all) == 0 {
			continue
		}
		text, err := json.Marshal(all)
		if err != nil {
			return err
		}
		metadata[key] = text
	}
	return nil
}

// Graft returns the workload with the template of pod, and the template's own additions kept.
func (t Template) Graft(workload, pod json.RawMessage) (json.RawMessage, error) {
	if t.partial {
		return workload, nil
	}
	var after struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
		Spec     json.RawMessage            `json:"spec"`
	}
	if err := json.Unmarshal(pod, &after); err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	if t.bare {
		return Patch(workload, []jsonpatch.Operation{jsonpatch.NewOperation("replace", t.pointer, after.Spec)})
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

// Patch applies operations to raw. Parts that they do not name stay as they are written.
func Patch(raw json.RawMessage, ops []jsonpatch.Operation) (json.RawMessage, error) {
	if len(ops) == 0 {
		return raw, nil
	}
	text, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("%w: encode patch: %w", problem.ErrInternal, err)
	}
	decoded, err := patch.DecodePatch(text)
	if err != nil {
		return nil, fmt.Errorf("%w: read patch: %w", problem.ErrInternal, err)
	}
	after, err := decoded.Apply(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: apply patch: %w", problem.ErrInternal, err)
	}
	return after, nil
}

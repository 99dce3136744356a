package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds on the search for pod templates.
const (
	maxTemplates     = 100
	maxTemplateDepth = 100
)

// Templates finds the pod templates of an object, wherever its kind has them, in the order of their paths: objects with
// containers in their spec (template, podTemplate), a pod's spec without a spec around it (a predictor), and, in kinds
// that run pods, containers that a controller completes, by the devices that they request.
func Templates(o Object) ([]Template, error) {
	d := json.NewDecoder(bytes.NewReader(o.Raw))
	d.UseNumber()
	var root map[string]any
	if d.Decode(&root) != nil || o.Kind == "Pod" {
		return nil, nil
	}
	f := templateFinder{builtIn: o.BuiltIn(), runsPods: o.RunsPods()}
	for _, key := range slices.Sorted(maps.Keys(root)) {
		if key != "metadata" && key != "status" {
			f.walk(root[key], root, "/"+keyToPointer.Replace(key), 1)
		}
	}
	if len(f.found) > maxTemplates {
		return nil, fmt.Errorf("it holds more than %d pod templates", maxTemplates)
	}
	return f.found, nil
}

type templateFinder struct {
	builtIn, runsPods bool
	found             []Template
	around            surroundings // of the value that is looked at
}

// walk looks for templates in value, which is at pointer in parent.
func (f *templateFinder) walk(value any, parent map[string]any, pointer string, depth int) {
	if depth > maxTemplateDepth || len(f.found) > maxTemplates {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		if f.take(v, parent, pointer) {
			return
		}
		f.around = append(f.around, v)
		defer func() { f.around = f.around[:len(f.around)-1] }()
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "containers" || key == "initContainers" { // of no pod, such as the containers of a pattern
				continue
			}
			f.walk(v[key], v, pointer+"/"+keyToPointer.Replace(key), depth+1)
		}
	case []any:
		for i, item := range v {
			f.walk(item, nil, pointer+"/"+strconv.Itoa(i), depth+1)
		}
	}
}

// take keeps the template that v is; false: it is none.
func (f *templateFinder) take(v, parent map[string]any, pointer string) bool {
	if spec, _ := v["spec"].(map[string]any); holdsContainers(spec, false) {
		f.found = append(f.found, Template{pointer: pointer, metadata: encode(v["metadata"]), spec: encode(spec), pods: podsOf(parent)})
		return true
	}
	if f.builtIn {
		return false
	}
	if holdsContainers(v, true) {
		spec, added := f.around.complete(v)
		f.found = append(f.found, Template{pointer: pointer, metadata: encode(f.around.labels(labelsOf(v))), spec: encode(spec),
			bare: true, pods: podsOf(parent), partial: added})
		return true
	}
	if !f.runsPods {
		return false
	}
	if spec := completed(v, pointer[strings.LastIndexByte(pointer, '/')+1:]); spec != nil {
		own := labelsOf(parent)
		if metadata, ok := parent["metadata"].(map[string]any); ok {
			own = labelsOf(metadata)
		}
		spec, _ = append(f.around, v).complete(spec)
		f.found = append(f.found, Template{pointer: pointer, metadata: encode(f.around.labels(own)), spec: encode(spec), partial: true, pods: podsOf(parent)})
		return true
	}
	return false
}

// maxPods bounds the number of pods of a template.
const maxPods = 1 << 20

// podsOf is how many pods the numbers beside a template mean.
func podsOf(beside map[string]any) int {
	number := func(key string) (int, bool) {
		text, _ := beside[key].(json.Number)
		n, err := strconv.Atoi(text.String())
		return min(max(n, 0), maxPods), err == nil
	}
	pods, written := number("replicas")
	if !written {
		pods, written = number("parallelism")
	}
	if !written {
		return 1
	}
	if all, written := number("completions"); written {
		return min(pods, all)
	}
	return pods
}

// labelsOf are the labels and annotations among the members of v.
func labelsOf(v map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		if all, ok := v[key].(map[string]any); ok {
			out[key] = all
		}
	}
	return out
}

// The name of a container, and of a field of one; patterns and placeholders have other characters.
var (
	containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	fieldName     = regexp.MustCompile(`^[A-Za-z]+$`)
)

// holdsContainers reports whether v is the spec of a pod. Only the spec of a template has containers without an image, which
// its controller adds.
func holdsContainers(v map[string]any, images bool) bool {
	containers, _ := v["containers"].([]any)
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if !ok {
			return false
		}
		for key := range container {
			if !fieldName.MatchString(key) {
				return false
			}
		}
		if name, named := container["name"]; named {
			if text, ok := name.(string); !ok || !containerName.MatchString(text) {
				return false
			}
		}
		if image, _ := container["image"].(string); images && image == "" {
			return false
		}
	}
	return len(containers) > 0
}

// completed is the spec of a pod with the container that v is a part of; nil: v requests no device.
func completed(v map[string]any, name string) map[string]any {
	resources, _ := v["resources"].(map[string]any)
	if resources == nil {
		resources, _ = v["resourcesPerNode"].(map[string]any)
	}
	if !requestsDevices(resources) {
		return nil
	}
	if name = strings.ToLower(name); !containerName.MatchString(name) {
		name = "main"
	}
	container := map[string]any{"name": name, "resources": resources}
	for _, key := range []string{"image", "command", "args", "env", "envFrom", "securityContext"} {
		if value, ok := v[key]; ok {
			container[key] = value
		}
	}
	return map[string]any{"containers": []any{container}}
}

// requestsDevices reports whether resources name an extended resource.
func requestsDevices(resources map[string]any) bool {
	for _, side := range []string{"limits", "requests"} {
		all, _ := resources[side].(map[string]any)
		for name := range all {
			if strings.Contains(name, "/") {
				return true
			}
		}
	}
	return false
}

// encode writes a decoded value.
func encode(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil || value == nil {
		return nil
	}
	return text
}

// Keys in JSON pointers.
var (
	keyToPointer = strings.NewReplacer("~", "~0", "/", "~1")
	keyOfPointer = strings.NewReplacer("~1", "/", "~0", "~")
)

// member returns an object's member, or nil.
func member(raw json.RawMessage, key string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members[key]
}

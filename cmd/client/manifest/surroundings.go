package manifest

import (
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// surroundings are the objects around a container, the outermost first. Custom resources have a pod's fields beside its container, or
// further out for all of their pods: the predictor of an InferenceService, templates and spec of a Workflow. The nearest counts.
type surroundings []map[string]any

// podFields are the fields of a pod's spec that are looked for around its containers.
var podFields = []string{"nodeSelector", "affinity", "tolerations", "schedulerName", "runtimeClassName", "priorityClassName",
	"hostPID", "hostIPC", "hostNetwork", "shareProcessNamespace"}

// complete returns spec with the fields that it leaves to its surroundings, and whether there are any.
func (s surroundings) complete(spec map[string]any) (_ map[string]any, added bool) {
	out := maps.Clone(spec)
	for _, around := range s.withDefaults() {
		for _, key := range podFields {
			value, there := around[key]
			if _, own := spec[key]; own || !there || !ofPod(key, value) {
				continue
			}
			out[key], added = value, true
		}
	}
	return out, added
}

// labels returns the labels and annotations of a pod that has some of its own, and those of its surroundings where it does not set them.
func (s surroundings) labels(own map[string]any) map[string]any {
	out := map[string]any{}
	add := func(metadata any) {
		from, _ := metadata.(map[string]any)
		for key, more := range labelsOf(from) {
			all, _ := out[key].(map[string]any)
			if all = maps.Clone(all); all == nil {
				all = map[string]any{}
			}
			texts, _ := more.(map[string]any)
			maps.Copy(all, texts)
			out[key] = all
		}
	}
	for _, around := range s.withDefaults() {
		add(around["podMetadata"])
		add(around["metadata"])
	}
	add(own)
	return out
}

// withDefaults has the defaults of templates behind the object that they stand in, as if they were further in.
func (s surroundings) withDefaults() (out surroundings) {
	for _, around := range s {
		out = append(out, around)
		if defaults, ok := around["templateDefaults"].(map[string]any); ok {
			out = append(out, defaults)
		}
	}
	return out
}

// ofPod reports whether the value of a field has the shape of that in a pod's spec.
func ofPod(key string, value any) bool {
	var spec corev1.PodSpec
	return json.Unmarshal(encode(map[string]any{key: value}), &spec) == nil
}

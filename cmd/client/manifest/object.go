package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/cmd/client/problem"
	"github.com/gpuslice/gpuslice/policies/api"
)

// Object is a Kubernetes object as it is in the input.
type Object struct {
	At               Source
	APIVersion, Kind string
	Namespace, Name  string
	generated        bool // Name is a prefix that the server completes
	Labels           map[string]string
	Raw              json.RawMessage
}

// String names the object for people: "pods.yaml: Pod team-a/train".
func (o Object) String() string {
	name := o.Name
	if o.generated {
		name += "*"
	}
	if name == "" {
		name = "without a name"
	}
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.At.String() + ": " + o.Kind + " " + name
}

// head has the common fields of Kubernetes objects.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace    string            `json:"namespace"`
		Name         string            `json:"name"`
		GenerateName string            `json:"generateName"`
		Labels       map[string]string `json:"labels"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// Objects returns the content of a document, one object or the objects of a list, and errors of unreadable ones.
func (d Document) Objects() ([]Object, []Error) {
	switch {
	case d.Err != nil:
		return nil, []Error{{d.At, d.Err}}
	case d.repeated != nil:
		return nil, []Error{{d.At, d.repeated}}
	}
	h, err := readHead(d.Raw)
	if err == nil && strings.HasSuffix(h.Kind, "List") && h.Items != nil {
		return listed(d.At, h)
	}
	o, err := objectOf(d.At, d.Raw, h, err)
	if err != nil {
		return nil, []Error{{d.At, err}}
	}
	return []Object{o}, nil
}

// listed returns the items of a list. An item of a typed list need not have a kind: the list has it.
func listed(at Source, list head) (all []Object, problems []Error) {
	for i, item := range list.Items {
		at.Item = i + 1
		h, err := readHead(item)
		if kind := strings.TrimSuffix(list.Kind, "List"); kind != "" && h.Kind == "" && h.APIVersion == "" {
			h.Kind, h.APIVersion = kind, list.APIVersion
			item = withHead(item, h)
		}
		o, err := objectOf(at, item, h, err)
		if err != nil {
			problems = append(problems, Error{at, err})
			continue
		}
		all = append(all, o)
	}
	return all, problems
}

// withHead is an item of a typed list as an object by itself.
func withHead(raw json.RawMessage, h head) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return raw // objectOf gives the reason
	}
	for key, value := range map[string]string{"apiVersion": h.APIVersion, "kind": h.Kind} {
		text, err := json.Marshal(value)
		if err != nil {
			return raw
		}
		members[key] = text
	}
	out, err := json.Marshal(members)
	if err != nil {
		return raw
	}
	return out
}

// objectOf makes an object of a head that was read, or, by err, is none.
func objectOf(at Source, raw json.RawMessage, h head, err error) (Object, error) {
	if h.Kind == "" && strings.HasPrefix(h.APIVersion, api.Domain+"/") {
		h.Kind = "Policy" // a document of ours needs no kind, and may lie beside the objects that it governs
	}
	switch {
	case err != nil:
		return Object{}, err
	case h.Kind == "" && h.APIVersion == "":
		return Object{}, errors.New("it is no Kubernetes object: apiVersion and kind are missing")
	case h.Kind == "":
		return Object{}, fmt.Errorf("it is no Kubernetes object: apiVersion is %q, and kind is missing", h.APIVersion)
	case h.APIVersion == "":
		return Object{}, fmt.Errorf("it is no Kubernetes object: kind is %q, and apiVersion is missing", h.Kind)
	}
	o := Object{At: at, APIVersion: h.APIVersion, Kind: h.Kind, Namespace: h.Metadata.Namespace,
		Name: h.Metadata.Name, Labels: h.Metadata.Labels, Raw: raw}
	if key := flattened(o); key != "" {
		return Object{}, fmt.Errorf("%s stands beside kind, where a %s has no such field: the file has lost its indentation", key, o.Kind)
	}
	if o.Name == "" && h.Metadata.GenerateName != "" {
		o.Name, o.generated = h.Metadata.GenerateName, true
	}
	return o, nil
}

// flattened is a field of a pod or workload that is at the top of it, as in text that was copied without its indentation; "":
// none does.
func flattened(o Object) string {
	if !o.BuiltIn() && !(o.Kind == "Pod" && o.APIVersion == "v1") {
		return ""
	}
	for _, key := range []string{"containers", "template", "jobTemplate", "image", "name"} {
		if member(o.Raw, key) != nil {
			return key
		}
	}
	return ""
}

func readHead(raw json.RawMessage) (head, error) {
	var h head
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return h, errors.New("it is no Kubernetes object: it is no map of keys and values")
	}
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &h)
	if err == nil {
		return h, nil
	}
	if key, value, found := unquoted(raw); found {
		return h, fmt.Errorf("%s is %s, and Kubernetes takes text only: write it in quotes, %q", key, value, value)
	}
	return h, fmt.Errorf("it is no Kubernetes object: %w", err)
}

// unquoted finds a label or annotation that YAML reads as something else than text: the usual slip with sizes.
func unquoted(raw json.RawMessage) (key, value string, found bool) {
	var tree struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(raw, &tree) != nil {
		return "", "", false
	}
	for _, field := range []string{"labels", "annotations"} {
		var entries map[string]json.RawMessage
		if json.Unmarshal(tree.Metadata[field], &entries) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if text := string(entries[name]); text != "" && strings.ContainsRune("-0123456789tf", rune(text[0])) {
				return fmt.Sprintf("metadata.%s[%s]", field, name), text, true
			}
		}
	}
	return "", "", false
}

// FromCluster is an object of a cluster as it would be in a file.
func FromCluster(apiVersion, kind string, o metav1.Object) (Object, error) {
	o.SetManagedFields(nil)
	raw, err := json.Marshal(o)
	if err != nil {
		return Object{}, fmt.Errorf("%w: encode %s %s: %w", problem.ErrInternal, kind, o.GetName(), err)
	}
	return Object{
		At: Source{File: "cluster"}, APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(),
		Name: o.GetName(), Labels: o.GetLabels(), Raw: raw,
	}, nil
}

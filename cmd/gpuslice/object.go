package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/policies/api"
)

// object is a Kubernetes object as it stands in the input.
type object struct {
	at               source
	apiVersion, kind string
	namespace, name  string
	generated        bool // name is a prefix that the server completes
	labels           map[string]string
	raw              json.RawMessage
}

// String names the object for people: "pods.yaml: Pod team-a/train".
func (o object) String() string {
	name := o.name
	if o.generated {
		name += "*"
	}
	if name == "" {
		name = "without a name"
	}
	if o.namespace != "" {
		name = o.namespace + "/" + name
	}
	return o.at.String() + ": " + o.kind + " " + name
}

// head is what every Kubernetes object has.
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

// objects returns what a document holds, one object or those of a list, and what of it cannot be read.
func (d document) objects() ([]object, []documentError) {
	switch {
	case d.err != nil:
		return nil, []documentError{{d.at, d.err}}
	case d.repeated != nil:
		return nil, []documentError{{d.at, d.repeated}}
	}
	h, err := readHead(d.raw)
	if err == nil && strings.HasSuffix(h.Kind, "List") && h.Items != nil {
		return listed(d.at, h)
	}
	o, err := objectOf(d.at, d.raw, h, err)
	if err != nil {
		return nil, []documentError{{d.at, err}}
	}
	return []object{o}, nil
}

// listed returns the items of a list. An item of a typed list need not say what it is: the list says it.
func listed(at source, list head) (all []object, problems []documentError) {
	for i, item := range list.Items {
		at.item = i + 1
		h, err := readHead(item)
		if kind := strings.TrimSuffix(list.Kind, "List"); kind != "" && h.Kind == "" && h.APIVersion == "" {
			h.Kind, h.APIVersion = kind, list.APIVersion
		}
		o, err := objectOf(at, item, h, err)
		if err != nil {
			problems = append(problems, documentError{at, err})
			continue
		}
		all = append(all, o)
	}
	return all, problems
}

// objectOf makes an object of a head that was read, or that err says is none.
func objectOf(at source, raw json.RawMessage, h head, err error) (object, error) {
	if h.Kind == "" && strings.HasPrefix(h.APIVersion, api.Domain+"/") {
		h.Kind = "Policy" // a document of ours needs no kind, and may lie beside what it governs
	}
	switch {
	case err != nil:
		return object{}, err
	case h.Kind == "" && h.APIVersion == "":
		return object{}, errors.New("it is no Kubernetes object: apiVersion and kind are missing")
	case h.Kind == "":
		return object{}, fmt.Errorf("it is no Kubernetes object: apiVersion is %q, and kind is missing", h.APIVersion)
	case h.APIVersion == "":
		return object{}, fmt.Errorf("it is no Kubernetes object: kind is %q, and apiVersion is missing", h.Kind)
	}
	o := object{at: at, apiVersion: h.APIVersion, kind: h.Kind, namespace: h.Metadata.Namespace, name: h.Metadata.Name, labels: h.Metadata.Labels, raw: raw}
	if o.name == "" && h.Metadata.GenerateName != "" {
		o.name, o.generated = h.Metadata.GenerateName, true
	}
	return o, nil
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

package document

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// FieldNames are the keys of a struct's fields, by index; "" where a field is not part of documents.
func FieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "-" {
			names[i] = name
		}
	}
	return names
}

// didYouMean names the field that is spelt like key but for case, dashes or a slip, or all that there are.
func didYouMean(key string, names []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	for _, name := range names {
		if name != "" && plain(name) == plain(key) {
			return fmt.Sprintf("did you mean %q?", name)
		}
	}
	if name := message.Nearest(key, names); name != "" {
		return fmt.Sprintf("did you mean %q?", name)
	}
	known := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	slices.Sort(known)
	return "accepted: " + strings.Join(known, ", ")
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	}
	return "single value"
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	}
	return "whole number"
}

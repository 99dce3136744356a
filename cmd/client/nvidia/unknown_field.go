package nvidia

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// UnknownField is a field of a configuration that the device plugin does not know, and ignores.
type UnknownField struct {
	Path    string // "sharing.timeSlicing.failOnInitError"
	Correct string // the right place or name of the field: "flags.failOnInitError"; "": unknown
}

// otherNames are names by which people write fields of the plugin.
var otherNames = map[string]string{
	"shares": "resources[].replicas", "slices": "resources[].replicas", "count": "resources[].replicas",
	"replicas": "resources[].replicas", "mig": "flags.migStrategy", "strategy": "flags.migStrategy",
}

// unknownFields lists the fields that a configuration has and the plugin's does not, sorted by path.
func unknownFields(fields any) []UnknownField {
	known := knownFields(reflect.TypeFor[PluginConfig](), "")
	var all []UnknownField
	walk(fields, "", func(path string) bool {
		if _, ok := known[path]; ok {
			return true
		}
		name := path[strings.LastIndex(path, ".")+1:]
		all = append(all, UnknownField{path, correct(known, path, name)})
		return false
	})
	slices.SortFunc(all, func(a, b UnknownField) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(all)
}

// walk calls visit with the path of each field, "[]" for the items of a list, and goes below those for which it is true.
func walk(value any, path string, visit func(string) bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			at := strings.TrimPrefix(path+"."+name, ".")
			if visit(at) {
				walk(below, at, visit)
			}
		}
	case []any:
		for _, item := range v {
			walk(item, path+"[]", visit)
		}
	}
}

// knownFields are the paths of a type's fields, by their JSON names.
func knownFields(t reflect.Type, path string) map[string]struct{} {
	all := map[string]struct{}{}
	switch t.Kind() {
	case reflect.Pointer:
		return knownFields(t.Elem(), path)
	case reflect.Slice:
		return knownFields(t.Elem(), path+"[]")
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := strings.TrimPrefix(path+"."+name, ".")
			switch {
			case f.Anonymous:
				at = path
			case name == "":
				continue // one that its type decodes itself
			default:
				all[at] = struct{}{}
			}
			maps.Copy(all, knownFields(f.Type, at))
		}
	}
	return all
}

// correct is where an unknown field belongs: the one place of its name, else a field with another name, in the same
// sharing strategy where there is one.
func correct(known map[string]struct{}, path, name string) string {
	var places []string
	for at := range known {
		if strings.EqualFold(at[strings.LastIndex(at, ".")+1:], name) {
			places = append(places, at)
		}
	}
	if len(places) == 1 {
		return places[0]
	}
	other, ok := otherNames[name]
	if !ok || strings.HasPrefix(other, "flags.") {
		return other
	}
	for _, strategy := range []string{"sharing.timeSlicing", "sharing.mps"} {
		if strings.HasPrefix(path, strategy+".") {
			return strategy + "." + other
		}
	}
	return "sharing.timeSlicing." + other
}

package nvidia

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

// UnknownField is a field of a configuration that the software does not know. The device plugin ignores it.
type UnknownField struct {
	Path    string // "sharing.timeSlicing.failOnInitError"
	Correct string // the right place or name of the field: "flags.failOnInitError"; "": unknown
}

// Advice is what to do about the field.
func (u UnknownField) Advice() string {
	if u.Correct == "" {
		return "unknown"
	}
	return "unknown here, write " + u.Correct
}

// otherNames are names by which people write fields of the plugin.
var otherNames = map[string]string{
	"shares": "resources[].replicas", "slices": "resources[].replicas", "count": "resources[].replicas",
	"replicas": "resources[].replicas", "mig": "flags.migStrategy", "strategy": "flags.migStrategy",
}

// anyName stands for the keys of a mapping that has names of the user's.
const anyName = "*"

// reading compares what a configuration has with what the software reads, by the fields of its type.
type reading struct {
	known   map[string]knownField // by path
	unknown []UnknownField
	wrong   []string // values of another kind than the plugin reads: "sharing.timeSlicing.resources[].replicas: "four" is not a whole number"
}

// knownField is a field that the plugin reads.
type knownField struct {
	of      reflect.Type
	anyCase bool // the plugin takes its name in any case, as encoding/json does where a type does not read itself
}

// readFields reads the fields of a configuration of the type.
func readFields(t reflect.Type, fields any) *reading {
	r := &reading{known: map[string]knownField{}}
	r.addKnown(t, "")
	r.walk(fields, "", "")
	slices.SortFunc(r.unknown, func(a, b UnknownField) int { return strings.Compare(a.Path, b.Path) })
	r.unknown = slices.Compact(r.unknown)
	slices.Sort(r.wrong)
	r.wrong = slices.Compact(r.wrong)
	return r
}

// walk reads the value at a path, "[]" for the items of a list; meant is the same path as the software spells it.
func (r *reading) walk(value any, path, meant string) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			at, as := join(path, name), r.canonical(meant, name)
			if _, ok := r.known[join(meant, anyName)]; ok {
				as = join(meant, anyName)
			}
			if _, ok := r.known[as]; !ok {
				as = r.correct(at, meant, name)
				shown := as
				if strings.Contains(as, anyName) {
					shown = join(path, nameOf(as))
				}
				r.unknown = append(r.unknown, UnknownField{at, shown})
			}
			if as == "" || parentOf(as) != meant {
				continue
			}
			if wanted := kindOf(r.known[as].of); wanted != "" && below != nil && wanted != kindOfValue(below) {
				text, _ := json.Marshal(below) // of what YAML gave
				r.wrong = append(r.wrong, fmt.Sprintf("%s: %.40s is not %s", at, text, wanted))
				continue
			}
			r.walk(below, at, as)
		}
	case []any:
		for _, item := range v {
			r.walk(item, path+"[]", meant+"[]")
		}
	}
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func nameOf(path string) string { return path[strings.LastIndex(path, ".")+1:] }

func parentOf(path string) string { return path[:max(strings.LastIndex(path, "."), 0)] }

// canonical is the path of a field below a known one, as the plugin has it.
func (r *reading) canonical(parent, name string) string {
	for at, field := range r.known {
		if field.anyCase && parentOf(at) == parent && strings.EqualFold(nameOf(at), name) {
			return at
		}
	}
	return join(parent, name)
}

// kindOf names the kind of value that a type holds; "": several.
func kindOf(t reflect.Type) string {
	if t == nil {
		return ""
	}
	readsItself := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return kindOf(t.Elem())
	case k == reflect.Map, k == reflect.Struct && t.NumField() > 0 && t.Field(0).Tag.Get("json") != "":
		return "a mapping of fields"
	case readsItself:
		return ""
	case k == reflect.Slice:
		return "a list"
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.Int:
		return "a whole number"
	case k == reflect.String:
		return "a text"
	}
	return ""
}

// kindOfValue names the kind of a value that YAML gave.
func kindOfValue(value any) string {
	if n, isNumber := value.(float64); isNumber && n == math.Trunc(n) {
		return kindOf(reflect.TypeFor[int]())
	}
	return kindOf(reflect.TypeOf(value))
}

// addKnown adds the fields of a type, by their JSON names.
func (r *reading) addKnown(t reflect.Type, path string) {
	switch t.Kind() {
	case reflect.Pointer:
		r.addKnown(t.Elem(), path)
	case reflect.Slice:
		r.addKnown(t.Elem(), path+"[]")
	case reflect.Map:
		r.known[join(path, anyName)] = knownField{of: t.Elem()}
		r.addKnown(t.Elem(), join(path, anyName))
	case reflect.Struct:
		anyCase := !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := join(path, name)
			switch {
			case f.Anonymous:
				at = path
			case name == "":
				continue // one that its type decodes itself
			default:
				r.known[at] = knownField{f.Type, anyCase}
			}
			r.addKnown(f.Type, at)
		}
	}
}

// correct is where an unknown field belongs: the one place of its name, else a field with another name, in the same
// sharing strategy where there is one, else the one that is spelt nearly so. "": unknown.
func (r *reading) correct(path, parent, name string) string {
	if places := r.places(func(at string) bool { return strings.EqualFold(nameOf(at), name) }); len(places) == 1 {
		return places[0]
	}
	if same := r.places(func(at string) bool { return parentOf(at) == parent && strings.EqualFold(nameOf(at), name) }); len(same) == 1 {
		return same[0]
	}
	if other, ok := otherNames[name]; ok {
		return inStrategy(path, other)
	}
	siblings, all := r.places(func(at string) bool { return parentOf(at) == parent }), r.places(func(string) bool { return true })
	for _, near := range [][]string{siblings, all} {
		byName := map[string]string{}
		for _, at := range near {
			byName[nameOf(at)] = at
		}
		names := slices.Sorted(maps.Keys(byName))
		if meant := cli.Nearest(name, names); len(meant) == 1 {
			return byName[meant[0]]
		}
	}
	return ""
}

// places are the known paths of which is reports that they are meant, sorted.
func (r *reading) places(is func(string) bool) (all []string) {
	for _, at := range slices.Sorted(maps.Keys(r.known)) {
		if is(at) {
			all = append(all, at)
		}
	}
	return all
}

// inStrategy is the place of a field of a sharing strategy.
func inStrategy(path, other string) string {
	if strings.HasPrefix(other, "flags.") {
		return other
	}
	for _, strategy := range []string{"sharing.timeSlicing", "sharing.mps"} {
		if strings.HasPrefix(path, strategy+".") {
			return strategy + "." + other
		}
	}
	return "sharing.timeSlicing." + other
}

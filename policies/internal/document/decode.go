package document

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// decoder fills Go values from a document's tree by their json tags, strictly and case-sensitively. It goes on after a
// problem, so that all are reported at once, each with its path and line. Values with a problem are left out.
//
// encoding/json and its relatives stop at the first value that does not fit, do not report its place, and read 1e400
// before anyone can bound it; here numbers are the text that was written.
type decoder struct{ problems field.ErrorList }

// Decode fills the struct that into points to, and returns the problems.
func Decode(root *yaml.Node, into any) field.ErrorList {
	d := &decoder{}
	d.decode(root, reflect.ValueOf(into).Elem(), nil)
	return d.problems
}

var plainInteger = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})$`)

func (d *decoder) reject(path *field.Path, n *yaml.Node, format string, args ...any) {
	value := any(field.OmitValueType{})
	if n.Kind == yaml.ScalarNode {
		value = strings.Trim(message.Quote(n.Value), `"`)
	}
	detail := fmt.Sprintf(format, args...) + fmt.Sprintf(" (line %d)", n.Line)
	d.problems = append(d.problems, &field.Error{Type: field.ErrorTypeInvalid, Field: path.String(), BadValue: value, Detail: detail})
}

// shorthand is a mapping that may be written as the value of one of its fields alone: Alone returns where that is kept.
type shorthand interface{ Alone() any }

// former is a mapping that had fields which earlier builds read: Removed returns what to write in the place of each.
type former interface{ Removed() map[string]string }

// decode fills v from n.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path *field.Path) {
	if n.ShortTag() == "!!null" {
		d.reject(path, n, "nothing is written here; write a value, or leave the key out")
		return
	}
	if v.Kind() == reflect.Pointer {
		target := reflect.New(v.Type().Elem())
		if _, amount := target.Interface().(*quantity.MiB); amount && n.Value == "0" {
			v.Set(target) // 0 and a missing value differ: none, or no reserve
			return
		}
		before := len(d.problems)
		d.decode(n, target.Elem(), path)
		if len(d.problems) == before || n.Kind == yaml.MappingNode {
			v.Set(target)
		}
		return
	}
	switch target := v.Addr().Interface().(type) {
	case shorthand:
		if n.Kind == yaml.ScalarNode {
			d.decode(n, reflect.ValueOf(target.Alone()).Elem(), path)
			return
		}
	case encoding.TextUnmarshaler:
		d.text(n, target, path)
		return
	case json.Unmarshaler:
		d.quoted(n, target, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Map:
		d.table(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

// text fills amounts and fractions. Unlike JSON it takes numbers too: fraction: 0.25.
func (d *decoder) text(n *yaml.Node, target encoding.TextUnmarshaler, path *field.Path) {
	if n.Kind != yaml.ScalarNode {
		d.reject(path, n, "accepted: a quantity, not a %s", kindOf(n))
		return
	}
	if err := target.UnmarshalText([]byte(n.Value)); err != nil {
		d.reject(path, n, "%v", err)
	}
}

// quoted fills types that read themselves from a JSON string: durations.
func (d *decoder) quoted(n *yaml.Node, target json.Unmarshaler, path *field.Path) {
	text, err := json.Marshal(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode || len(n.Value) > quantity.MaxText || target.UnmarshalJSON(text) != nil {
		d.reject(path, n, `accepted: a duration such as "30s" or "5m"`)
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path *field.Path) {
	tag := n.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode:
		d.reject(path, n, "accepted: a %s, not a %s", kindName(v.Kind()), kindOf(n))
	case v.Kind() == reflect.String && tag == "!!str":
		v.SetString(n.Value)
	case v.Kind() == reflect.String:
		d.reject(path, n, "accepted: a text; write it in quotes: %q", Shorten(n.Value))
	case v.Kind() == reflect.Bool && tag == "!!bool":
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case v.Kind() == reflect.Bool:
		d.reject(path, n, "accepted: true or false, without quotes")
	case tag == "!!int" && plainInteger.MatchString(n.Value):
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || v.OverflowInt(i) {
			d.reject(path, n, "accepted: a whole number that is not so large")
			return
		}
		v.SetInt(i)
	default:
		d.reject(path, n, "accepted: a whole number, without quotes")
	}
}

// entries calls f for each key of a mapping, and rejects other nodes, keys that are no text, and repeated ones.
func (d *decoder) entries(n *yaml.Node, path *field.Path, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.reject(path, n, "accepted: a mapping of keys to values, not a %s", kindOf(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content) && len(d.problems) < MaxProblems; i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			d.reject(path, key, "accepted: a text as key; write it in quotes")
			continue
		}
		if line, twice := seen[key.Value]; twice {
			d.problems = append(d.problems, &field.Error{Type: field.ErrorTypeDuplicate, Field: child(path, Shorten(key.Value)).String(),
				BadValue: Shorten(key.Value), Detail: fmt.Sprintf("the key is on line %d and again on line %d", line, key.Line)})
			continue
		}
		seen[key.Value] = key.Line
		f(key, n.Content[i+1])
	}
}

func child(path *field.Path, key string) *field.Path {
	if path == nil {
		return field.NewPath(key)
	}
	return path.Child(key)
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, path *field.Path) {
	names := FieldNames(v.Type())
	d.entries(n, path, func(key, value *yaml.Node) {
		at := child(path, Shorten(key.Value))
		i := slices.Index(names, key.Value)
		if i < 0 || key.Value == "" {
			if had, ok := v.Addr().Interface().(former); ok && had.Removed()[key.Value] != "" {
				d.reject(at, key, "removed field; %s", had.Removed()[key.Value])
				return
			}
			d.reject(at, key, "unknown field; %s", didYouMean(key.Value, names))
			return
		}
		target := v.Field(i)
		before := len(d.problems)
		d.decode(value, target, at)
		if len(d.problems) == before {
			d.rejectEmpty(value, v.Type(), i, target, at)
		}
	})
}

// rejectEmpty rejects a written value that would read as if nothing had been written: slices: 0 does not forbid
// slices, and mode: "" is not a mode.
func (d *decoder) rejectEmpty(n *yaml.Node, in reflect.Type, i int, v reflect.Value, path *field.Path) {
	_, options, _ := strings.Cut(in.Field(i).Tag.Get("json"), ",")
	ours := !strings.HasPrefix(in.PkgPath(), "k8s.io/")
	if ours && n.Kind == yaml.ScalarNode && v.Kind() != reflect.Bool && v.IsZero() && strings.HasPrefix(options, "omit") {
		d.reject(path, n, "that reads as if nothing were written; leave the key out, or write a value that is not empty or zero")
	}
}

func (d *decoder) table(n *yaml.Node, v reflect.Value, path *field.Path) {
	d.entries(n, path, func(key, value *yaml.Node) {
		element := reflect.New(v.Type().Elem()).Elem()
		before := len(d.problems)
		d.decode(value, element, path.Key(Shorten(key.Value)))
		if len(d.problems) > before && value.Kind != yaml.MappingNode {
			return
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), element)
	})
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path *field.Path) {
	if n.Kind != yaml.SequenceNode {
		d.reject(path, n, "accepted: a list, not a %s", kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, len(n.Content)))
	for i, item := range n.Content {
		if len(d.problems) >= MaxProblems {
			return
		}
		element := reflect.New(v.Type().Elem()).Elem()
		before := len(d.problems)
		d.decode(item, element, path.Index(i))
		if len(d.problems) == before || item.Kind == yaml.MappingNode {
			v.Set(reflect.Append(v, element))
		}
	}
}

// Entries reads a mapping of names to values of one kind: the readable entries, and problems. known returns the error
// of a name, whose value is not read then; check reports errors of a value, or of a field of it.
func Entries[T any](root *yaml.Node, known func(name string) string,
	check func(value T, report func(at, format string, args ...any))) (map[string]T, field.ErrorList) {
	d := &decoder{}
	out := make(map[string]T, len(root.Content)/2)
	d.entries(root, nil, func(key, node *yaml.Node) {
		at := field.NewPath(Shorten(key.Value))
		if problem := known(key.Value); problem != "" {
			d.reject(at, key, "%s", problem)
			return
		}
		var value T
		before := len(d.problems)
		if d.decode(node, reflect.ValueOf(&value).Elem(), at); len(d.problems) == before {
			check(value, func(name, format string, args ...any) {
				if name == "" {
					d.reject(at, node, format, args...)
					return
				}
				d.reject(at.Child(name), node, format, args...)
			})
		}
		out[key.Value] = value
	})
	return out, d.problems
}

package podedit

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	jsonpatch "gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// Operations returns the operations that turn text, the JSON that before was read from, into after. Containers, volumes and
// variables are matched by name and changed where they stand, so fields that this build does not know stay on the
// object they belong to. Equal pods give no operation. The values of operations are parts of after.
//
// The generic differ is not used for two reasons: against the text it removes every field that the typed pod does
// not have, and it compares lists by position, which moves unknown fields to another container.
func Operations(text []byte, before, after *corev1.Pod) []jsonpatch.Operation {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	var d differ
	d.fields(maps.Collect(partsOf(text)), reflect.ValueOf(*before), reflect.ValueOf(*after))
	return d.ops
}

// ChangedPaths names the fields in which two pods differ, for people: spec.containers[main].env[A].
func ChangedPaths(before, after *corev1.Pod) []string {
	if reflect.DeepEqual(before, after) || equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	text, err := json.Marshal(before)
	if err != nil {
		panic("encode pod: " + err.Error()) // a typed pod can be encoded
	}
	d := differ{named: true}
	d.fields(maps.Collect(partsOf(text)), reflect.ValueOf(*before), reflect.ValueOf(*after))
	out := make([]string, len(d.ops))
	for i, op := range d.ops {
		out[i] = strings.TrimPrefix(op.Path, "/")
	}
	return out
}

// differ collects operations. raw is the document that will be patched, before and after are typed and not converted:
// most of a pod stays as it is.
type differ struct {
	path  []string // of the compared value
	ops   []jsonpatch.Operation
	named bool // paths are for people
}

func (d *differ) emit(op string, value any) {
	at := strings.Join(d.path, "/")
	if d.named {
		at = strings.ReplaceAll(strings.Join(d.path, "."), ".[", "[")
	}
	d.ops = append(d.ops, jsonpatch.NewOperation(op, "/"+at, value))
}

// key is how a path names an entry of a map.
func (d *differ) key(name string) string {
	if d.named {
		return bracketed(name)
	}
	return EscapePointer(name)
}

// index is how a path names an element of a list.
func (d *differ) index(i int, key elementKey) string {
	if d.named {
		return bracketed(key.text)
	}
	return strconv.Itoa(i)
}

// bracketed quotes, and cuts, any name that is not plain.
func bracketed(name string) string {
	if len(name) > 128 || strconv.Quote(name) != `"`+name+`"` {
		name = message.Quote(name)
	}
	return "[" + name + "]"
}

// under compares the values of a key, which is escaped. A raw of null or nothing, an invalid before or after mean that
// there is none.
func (d *differ) under(key string, raw jsontext.Value, before, after reflect.Value) {
	d.path = append(d.path, key)
	if d.named && before.Kind() == reflect.Slice && !after.IsValid() {
		after = reflect.Zero(before.Type()) // so that each element is named
	}
	switch {
	case after.IsValid() && before.IsValid():
		d.value(raw, before, after)
	case after.IsValid():
		d.emit("add", after.Interface())
	case before.IsValid() && stands(raw):
		d.emit("remove", nil)
	}
	d.path = d.path[:len(d.path)-1]
}

// value compares two values: part by part, where raw has these parts.
func (d *differ) value(raw jsontext.Value, before, after reflect.Value) {
	if reflect.DeepEqual(before.Interface(), after.Interface()) {
		return // a list of arguments may have a million, each of which would get a key
	}
	b, a := reflect.Indirect(before), reflect.Indirect(after)
	switch kind, has := b.Kind(), raw.Kind(); {
	case kind == reflect.Struct && has == '{':
		d.fields(maps.Collect(partsOf(raw)), b, a)
	case kind == reflect.Map && has == '{':
		d.entries(maps.Collect(partsOf(raw)), b, a)
	case kind == reflect.Slice && has == '[' && d.list(raw, b, a):
	case equality.Semantic.DeepEqual(b.Interface(), a.Interface()):
	case !stands(raw):
		d.emit("add", after.Interface())
	default:
		d.emit("replace", after.Interface())
	}
}

// fields compares structs.
func (d *differ) fields(raw map[string]jsontext.Value, before, after reflect.Value) {
	for i := range before.NumField() {
		b, a := before.Field(i), after.Field(i)
		if b.IsZero() && a.IsZero() || b.Kind() == reflect.String && b.String() == a.String() {
			continue
		}
		name, _, _ := strings.Cut(before.Type().Field(i).Tag.Get("json"), ",")
		if name == "" { // its fields stand among those of the struct
			d.fields(raw, b, a)
			continue
		}
		d.under(name, raw[name], unlessEmpty(b), unlessEmpty(a))
	}
}

// stands reports whether there is a value.
func stands(raw jsontext.Value) bool { return len(raw) > 0 && raw.Kind() != 'n' }

// unlessEmpty is the field, or an invalid value where JSON leaves it out.
func unlessEmpty(field reflect.Value) reflect.Value {
	switch field.Kind() {
	case reflect.Struct:
		return field
	case reflect.Map, reflect.Slice:
		if field.Len() > 0 {
			return field
		}
	default:
		if !field.IsZero() {
			return field
		}
	}
	return reflect.Value{}
}

// entries compares maps, in the order of their keys.
func (d *differ) entries(raw map[string]jsontext.Value, before, after reflect.Value) {
	keys := after.MapKeys()
	for _, key := range before.MapKeys() {
		if !after.MapIndex(key).IsValid() {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		d.under(d.key(key.String()), raw[key.String()], before.MapIndex(key), after.MapIndex(key))
	}
}

// list changes elements that stay in place, then removes from the end, then adds from the front, so that every index is
// true when its operation runs. A list whose common elements changed their order is replaced whole. It returns false if
// the text has other elements.
func (d *differ) list(text jsontext.Value, before, after reflect.Value) bool {
	var raw []jsontext.Value
	for _, value := range partsOf(text) {
		raw = append(raw, value)
	}
	if len(raw) != before.Len() {
		return false
	}
	keysBefore, keysAfter := elementKeys(before), elementKeys(after)
	at := make(map[elementKey]int, len(keysBefore))
	for i, k := range keysBefore {
		at[k] = i
	}
	last, stays := -1, make(map[elementKey]bool, len(keysAfter))
	for _, k := range keysAfter {
		stays[k] = true
		if i, ok := at[k]; ok {
			if i < last {
				d.emit("replace", after.Interface())
				return true
			}
			last = i
		}
	}
	for j, k := range keysAfter {
		i, ok := at[k]
		switch {
		case !ok:
		case podspec.IsOurs(k.text) && !d.named: // nothing that somebody else wrote there stays
			d.under(d.index(i, k), whole, before.Index(i), after.Index(j))
		default:
			d.under(d.index(i, k), raw[i], before.Index(i), after.Index(j))
		}
	}
	for i := len(keysBefore) - 1; i >= 0; i-- {
		if !stays[keysBefore[i]] {
			d.under(d.index(i, keysBefore[i]), raw[i], before.Index(i), reflect.Value{})
		}
	}
	for j, k := range keysAfter {
		if _, ok := at[k]; !ok {
			d.under(d.index(j, k), nil, reflect.Value{}, after.Index(j))
		}
	}
	return true
}

// whole marks a value that is replaced whole: it has no parts.
var whole = jsontext.Value("0")

// elementKey identifies an element of a list: by its mount path or name where it has one, else by its whole text; the n-th
// of equal ones is numbered.
type elementKey struct {
	text string
	nth  int
}

func elementKeys(list reflect.Value) []elementKey {
	seen := make(map[string]int, list.Len())
	keys := make([]elementKey, list.Len())
	for i := range keys {
		text := elementText(list.Index(i))
		keys[i] = elementKey{text, seen[text]}
		seen[text]++
	}
	return keys
}

func elementText(e reflect.Value) string {
	if e.Kind() == reflect.String {
		return e.String()
	}
	for _, name := range []string{"MountPath", "Name"} {
		if field := e.FieldByName(name); field.IsValid() && field.Kind() == reflect.String && field.Len() > 0 {
			return field.String()
		}
	}
	b, err := json.Marshal(e.Interface())
	if err != nil {
		panic("encode element: " + err.Error())
	}
	return string(b)
}

func EscapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

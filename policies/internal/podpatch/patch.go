package podpatch

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/internal/podspec"
)

// Operations returns the operations that turn raw, the tree that before was read from, into after. Containers, volumes and
// variables are matched by name and changed where they stand, so fields that this build does not know stay on the
// object they belong to. Equal pods give no operation.
//
// The generic differ is not used for two reasons: against the raw tree it removes every field that the typed pod does
// not have, and it compares lists by position, which moves unknown fields to another container.
func Operations(raw map[string]any, before, after *corev1.Pod) []jsonpatch.Operation {
	var d differ
	d.object("", raw, treeOf(before), treeOf(after))
	return d.ops
}

// treeOf is the pod as plain JSON values. Converting a typed pod cannot fail.
func treeOf(pod *corev1.Pod) map[string]any {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		panic("convert pod: " + err.Error())
	}
	return tree
}

// ChangedPaths names the fields in which two pods differ.
func ChangedPaths(before, after *corev1.Pod) (out []string) {
	tree := treeOf(before)
	var d differ
	d.object("", tree, tree, treeOf(after))
	for _, op := range d.ops {
		out = append(out, strings.ReplaceAll(strings.TrimPrefix(op.Path, "/"), "/", "."))
	}
	return out
}

// differ collects operations. raw is what stands in the document that will be patched, before and after are typed.
type differ struct{ ops []jsonpatch.Operation }

func (d *differ) emit(op, path string, value any) {
	d.ops = append(d.ops, jsonpatch.NewOperation(op, path, value))
}

func (d *differ) object(path string, raw, before, after map[string]any) {
	keys := slices.Sorted(maps.Keys(after))
	for key := range before {
		if _, ok := after[key]; !ok {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		d.value(path+"/"+EscapePointer(key), raw[key], before[key], after[key])
	}
}

// value compares one field. A nil raw, before or after means that the field is not there.
func (d *differ) value(path string, raw, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	switch {
	case after == nil:
		if raw != nil {
			d.emit("remove", path, nil)
		}
		return
	case before == nil || raw == nil:
		d.emit("add", path, after)
		return
	}
	if r, b, a, ok := threeOf[map[string]any](raw, before, after); ok {
		d.object(path, r, b, a)
		return
	}
	if r, b, a, ok := threeOf[[]any](raw, before, after); ok && len(r) == len(b) {
		d.list(path, r, b, a)
		return
	}
	d.emit("replace", path, after)
}

func threeOf[T any](raw, before, after any) (r, b, a T, ok bool) {
	r, ok1 := raw.(T)
	b, ok2 := before.(T)
	a, ok3 := after.(T)
	return r, b, a, ok1 && ok2 && ok3
}

// list changes what stays in place, then removes from the end, then adds from the front, so that every index is true
// when its operation runs. A list whose common elements changed their order is replaced whole.
func (d *differ) list(path string, raw, before, after []any) {
	keysBefore, keysAfter := elementKeys(before), elementKeys(after)
	at := make(map[string]int, len(keysBefore))
	for i, k := range keysBefore {
		at[k] = i
	}
	last := -1
	for _, k := range keysAfter {
		if i, ok := at[k]; ok {
			if i < last {
				d.emit("replace", path, after)
				return
			}
			last = i
		}
	}
	for j, k := range keysAfter {
		i, ok := at[k]
		switch at := path + "/" + strconv.Itoa(i); {
		case !ok:
		case strings.HasPrefix(k, "name="+podspec.Prefix) && !reflect.DeepEqual(before[i], after[j]):
			d.emit("replace", at, after[j]) // ours: nothing that somebody else wrote there stays
		default:
			d.value(at, raw[i], before[i], after[j])
		}
	}
	for i := len(keysBefore) - 1; i >= 0; i-- {
		if !slices.Contains(keysAfter, keysBefore[i]) {
			d.emit("remove", path+"/"+strconv.Itoa(i), nil)
		}
	}
	for j, k := range keysAfter {
		if _, ok := at[k]; !ok {
			d.emit("add", path+"/"+strconv.Itoa(j), after[j])
		}
	}
}

// elementKeys identifies the elements of a list: by name, mount path or key where they have one, else by their whole
// text; the n-th of equal ones is numbered.
func elementKeys(list []any) []string {
	seen := make(map[string]int, len(list))
	keys := make([]string, len(list))
	for i, e := range list {
		k := elementKey(e)
		seen[k]++
		keys[i] = k + "#" + strconv.Itoa(seen[k])
	}
	return keys
}

func elementKey(e any) string {
	if m, ok := e.(map[string]any); ok {
		for _, field := range []string{"mountPath", "name"} {
			if text, ok := m[field].(string); ok {
				return field + "=" + text
			}
		}
	}
	b, err := json.Marshal(e)
	if err != nil {
		panic("encode element: " + err.Error())
	}
	return string(b)
}

func EscapePointer(key string) string {
	if !strings.ContainsAny(key, "~/") { // most keys: a replacer costs more than the rest of the comparison
		return key
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

package podedit

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStoredAlike sets every field that a pod's spec can have, one at a time: each makes another spec of it.
func TestStoredAlike(t *testing.T) {
	t.Parallel()
	var spec corev1.PodSpec
	fields := 0
	setEach(reflect.ValueOf(&spec).Elem(), "spec", func(path string, set func()) {
		before := spec.DeepCopy()
		if !storedAlike(before, &spec) {
			t.Errorf("without %s: a copy is not stored alike", path)
		}
		set()
		fields++
		if storedAlike(before, &spec) {
			t.Errorf("%s is not compared", path)
		}
	})
	if fields < 500 {
		t.Errorf("%d fields were set", fields)
	}
}

// setEach calls visit for all that stands under a value, with what sets it. Lists and maps get one element.
func setEach(v reflect.Value, path string, visit func(path string, set func())) {
	switch kind := v.Kind(); {
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		visit(path, func() { v.Set(reflect.ValueOf(resource.MustParse("7"))) })
	case v.Type() == reflect.TypeFor[metav1.Time]():
		visit(path, func() { v.Set(reflect.ValueOf(metav1.Unix(7, 0))) })
	case v.Type() == reflect.TypeFor[time.Time]():
		visit(path, func() { v.Set(reflect.ValueOf(time.Unix(7, 0))) })
	case kind == reflect.Struct:
		for i := range v.NumField() {
			setEach(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case kind == reflect.Pointer:
		visit(path, func() { v.Set(reflect.New(v.Type().Elem())) })
		setEach(v.Elem(), path, visit)
	case kind == reflect.Slice:
		visit(path, func() { v.Set(reflect.MakeSlice(v.Type(), 1, 1)) })
		setEach(v.Index(0), path+"[0]", visit)
	case kind == reflect.Map:
		key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		key.SetString("key")
		visit(path, func() { v.Set(reflect.MakeMap(v.Type())); v.SetMapIndex(key, element) })
		setEach(element, path+"[key]", func(path string, set func()) { visit(path, func() { set(); v.SetMapIndex(key, element) }) })
	case kind == reflect.String:
		visit(path, func() { v.SetString("text") })
	case kind == reflect.Bool:
		visit(path, func() { v.SetBool(true) })
	case v.CanInt():
		visit(path, func() { v.SetInt(7) })
	default:
		visit(path, func() { v.SetUint(7) })
	}
}

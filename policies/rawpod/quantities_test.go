package rawpod

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestCheckQuantities writes each quantity that a pod's spec can have, one at a time, with more digits than are read: printing one
// of 250,000 takes half a minute.
func TestCheckQuantities(t *testing.T) {
	t.Parallel()
	many := "1" + strings.Repeat("0", 1000)
	found := 0
	eachQuantity(reflect.TypeFor[corev1.PodSpec](), func(path string, with func(value any) any) {
		found++
		for text, denied := range map[string]bool{many: true, "1e1000": true, "8Gi": false} {
			raw, err := json.Marshal(map[string]any{"spec": with(text)})
			if err != nil {
				t.Fatal(err)
			}
			if v, err := checkQuantities(raw); (v != nil) != denied || err != nil {
				t.Errorf("spec%s: %.10s: denied: %t, %v", path, text, v != nil, err)
			}
		}
	})
	if found < 15 {
		t.Errorf("found %d quantities", found)
	}
}

// eachQuantity calls visit for each quantity that stands under a type, with what makes a value of the type around it.
func eachQuantity(of reflect.Type, visit func(path string, with func(value any) any)) {
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[resource.Quantity]():
		visit("", func(value any) any { return value })
	case kind == reflect.Pointer:
		eachQuantity(of.Elem(), visit)
	case kind == reflect.Slice:
		eachQuantity(of.Elem(), func(path string, with func(any) any) {
			visit("[0]"+path, func(value any) any { return []any{with(value)} })
		})
	case kind == reflect.Map:
		eachQuantity(of.Elem(), func(path string, with func(any) any) {
			visit("[key]"+path, func(value any) any { return map[string]any{"key": with(value)} })
		})
	case kind == reflect.Struct:
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			eachQuantity(of.Field(i).Type, func(path string, with func(any) any) {
				visit("."+name+path, func(value any) any {
					if name == "" { // its fields stand in the struct around it
						return with(value)
					}
					return map[string]any{name: with(value)}
				})
			})
		}
	}
}

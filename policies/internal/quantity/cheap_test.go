package quantity

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAllCheap(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"cpu":"500m","memory":"16Gi","gpu":1,"x":1.5e3,"y":-7}`:        true,
		`{"image":"registry.example/a@sha256:1e1000","note":"1e1000 {"}`: true,
		`{"quote":"\"1e1000","uid":"705ab4f5-6393-11e8-b7cc-42010a80"}`:  true,
		``:                           true,
		`{"cpu":"1e1000"}`:           false,
		`{"cpu":1e1000}`:             false,
		`{"cpu":-1E+1000}`:           false,
		`{"cpu":" 1e1000 "}`:         false,
		`{"cpu":"1\u0065100000"}`:    true, // no parser of quantities takes an escape
		`{"a\\":"1e1000"}`:           false,
		`{"a\"":"x","cpu":"1e1000"}`: false,
		`{"cpu":"` + strings.Repeat("9", 41) + `"}`: false,
		`[` + strings.Repeat("9", 41) + `]`:         false,
	} {
		if got := AllCheap([]byte(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// FuzzAllCheap holds it to Cheap: what it lets pass is bounded, or no parser takes it.
func FuzzAllCheap(f *testing.F) {
	for _, text := range []string{"1", "8Gi", "1e3", "1e+99", "1E-100", "e1000", ".5e", " 1e1000", "\u00a01e1000", "1e1000\\", `"1e1000`,
		"12345678901234567890123456789012345678901", "0x1e1000", "1e1000i", "e000\f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		encoded, err := json.Marshal(map[string]string{text: text})
		if err != nil || len(text) > 200 || !AllCheap(encoded) {
			return
		}
		trimmed := strings.TrimSpace(text)
		if len(trimmed) <= 2*MaxText && Cheap.MatchString(trimmed) {
			return
		}
		value, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := new(resource.Quantity).UnmarshalJSON(value); err == nil {
			t.Errorf("%q is let pass, and read as a quantity", text)
		}
	})
}

package manifest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"equal objects give nothing", `{"a":1}`, `{"a":1}`, ""},
		{"distant changes are hunks of their own", `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`,
			`{"a":2,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}`,
			"@@ -1,4 +1,4 @@\n-a: 1\n+a: 2\n b: 1\n c: 1\n d: 1\n@@ -6,4 +6,3 @@\n f: 1\n g: 1\n h: 1\n-i: 1\n"},
		{"close changes share a hunk", `{"a":1,"b":1,"c":1}`, `{"a":2,"b":1,"c":2}`, "@@ -1,3 +1,3 @@\n-a: 1\n+a: 2\n b: 1\n-c: 1\n+c: 2\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			object := Object{At: Source{File: "pod.yaml"}, Kind: "Pod", Name: "train", Raw: json.RawMessage(c.before)}
			got, err := Diff(object, json.RawMessage(c.after), "as it comes out")
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if want != "" {
				want = "--- pod.yaml: Pod train (as written)\n+++ pod.yaml: Pod train (as it comes out)\n" + want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

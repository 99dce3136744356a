package manifest

import (
	"strings"
	"testing"
)

func TestLabelProblem(t *testing.T) {
	for _, c := range []struct {
		name, key, value, want string // "": the API server takes it
	}{
		{"a size", "gpuslice.dev/memory", "8Gi", ""},
		{"an empty value", "gpuslice.dev/memory", "", ""},
		{"a fraction with a slash", "gpuslice.dev/fraction", "1/4", `write "0.25"`},
		{"a third", "gpuslice.dev/fraction", "1/3", `write "0.3333"`},
		{"a percentage", "gpuslice.dev/fraction", "25%", `write "0.25"`},
		{"a fraction of nothing", "gpuslice.dev/fraction", "1/0", "a valid label must be"},
		{"no numbers", "gpuslice.dev/fraction", "NaN/NaN", "a valid label must be"},
		{"another label with a slash", "team", "a/b", "a valid label must be"},
		{"a value that is too long", "team", strings.Repeat("a", 64), "63"},
		{"a key with two slashes", "gpuslice.dev/a/b", "c", "DNS subdomain prefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := LabelProblem(map[string]string{c.key: c.value})
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q does not say %q", got, c.want)
			}
		})
	}
}

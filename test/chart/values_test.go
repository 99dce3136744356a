package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// others are values that everything.yaml cannot have beside the rest.
const others = `
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
guard: {enabled: false, image: {tag: v8}}
verify: {image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}
samplePolicies: true
networkPolicy: {enabled: false}
podDisruptionBudget: {enabled: false}
`

// TestValuesUsed sets one value after the other: one that no template reads would be a promise that
// nobody keeps.
func TestValuesUsed(t *testing.T) {
	t.Parallel()
	t.Run("each changes what is rendered", func(t *testing.T) {
		t.Parallel()
		h := newHelm(t, "")
		tag := version("v1")
		standard := h.run("template", release, chartFolder, tag)
		var defaults, full, rest map[string]any
		for to, text := range map[*map[string]any][]byte{
			&defaults: file(t, filepath.Join(chartFolder, "values.yaml")), &full: file(t, "testdata/everything.yaml"), &rest: []byte(others),
		} {
			if err := yaml.Unmarshal(text, to); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range paths(nil, defaults) {
			value, ok := at(full, path)
			if !ok {
				value, ok = at(rest, path)
			}
			name := strings.Join(path, ".")
			if !ok {
				t.Errorf("%s is in neither everything.yaml nor others: give it a value there that is not its default", name)
				continue
			}
			for _, key := range slices.Backward(path) {
				value = map[string]any{key: value}
			}
			text, err := yaml.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			alone := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(alone, text, 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"template", release, chartFolder, "--values=" + alone}
			if name != "image.tag" {
				args = append(args, tag)
			}
			if h.run(args...) == standard {
				t.Errorf("%s changes nothing: no template reads it", name)
			}
		}
	})
}

// paths are the values below a path, each as its keys. What makes sense only together is one value.
func paths(under []string, values map[string]any) (out [][]string) {
	for key, v := range values {
		path := append(slices.Clone(under), key)
		inner, ok := v.(map[string]any)
		if !ok || len(inner) == 0 || key == "certificates" || key == "agent" || key == "podSecurityContext" ||
			key == "securityContext" || len(under) == 1 && under[0] == "metrics" {
			out = append(out, path)
			continue
		}
		out = append(out, paths(path, inner)...)
	}
	return out
}

// at returns what lies at a path.
func at(values map[string]any, path []string) (any, bool) {
	v, ok := values[path[0]]
	if !ok || len(path) == 1 {
		return v, ok
	}
	inner, _ := v.(map[string]any)
	return at(inner, path[1:])
}

func file(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

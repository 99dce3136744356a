package deploy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// values are the paths of the chart's settings, in their order: whatever has a comment is one. A key without a comment holds
// settings.
func values(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return settings(t, "", document.Content[0])
}

func settings(t *testing.T, under string, n *yaml.Node) (out []string) {
	t.Helper()
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		path, comment := under+key.Value, strings.TrimSpace(strings.ReplaceAll(key.HeadComment, "# ", ""))
		_, comment, _ = strings.Cut("\n\n"+comment, "\n\n")
		switch {
		case comment != "":
			out = append(out, path)
		case v.Kind == yaml.MappingNode && len(v.Content) > 0:
			out = append(out, settings(t, path+".", v)...)
		default:
			t.Errorf("values.yaml does not describe %s: write a comment above it", path)
		}
	}
	return out
}

func TestValues(t *testing.T) {
	t.Parallel()
	// The table of values in README.md is compared with values.yaml.
	t.Run("the page has them all", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile("README.md")
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), "| value | meaning |\n|---|---|\n")
		table, _, _ = strings.Cut(table, "\n\n")
		have, named := values(t), 0
		for row := range strings.Lines(table) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
			for _, span := range codeSpan.FindAllString(cell, -1) {
				named++
				if name := strings.Trim(span, "`"); !slices.Contains(have, name) {
					t.Errorf("README.md names %s, and values.yaml does not have it", name)
				}
			}
		}
		if named < 5 {
			t.Errorf("README.md names %d values", named)
		}
	})
	// A misspelled value is not taken for none.
	t.Run("the schema has them and no others", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile("chart/values.schema.json")
		if err != nil {
			t.Fatal(err)
		}
		var root schema
		if err := json.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		global := root.Properties["global"]
		global.Additional = false // other keys are for other charts of a chart that holds both
		root.Properties["global"] = global
		have := map[string]bool{}
		leaves(t, root.Defs, "", root, have)
		want := map[string]bool{}
		for _, v := range values(t) {
			want[v] = true
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("values.schema.json and values.yaml differ (-values +schema)\n%s", diff)
		}
	})
}

// TestOtherNames holds the names that the schema allows although they are no values to those that the chart answers.
func TestOtherNames(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	var allowed []string
	for prefix, s := range map[string]schema{"": root, "podDisruptionBudget.": root.Properties["podDisruptionBudget"],
		"serviceAccount.": root.Properties["serviceAccount"]} {
		for pattern := range s.Patterns {
			for name := range strings.SplitSeq(strings.Trim(pattern, "^()$"), "|") {
				allowed = append(allowed, prefix+name)
			}
		}
	}
	template, err := os.ReadFile("chart/templates/_names.tpl")
	if err != nil {
		t.Fatal(err)
	}
	var answered []string
	for _, entry := range otherName.FindAllStringSubmatch(string(template), -1) {
		answered = append(answered, entry[1])
	}
	slices.Sort(allowed)
	slices.Sort(answered)
	if diff := cmp.Diff(allowed, answered); diff != "" || len(allowed) < 20 {
		t.Errorf("values.schema.json and _names.tpl differ (-allowed +answered)\n%s", diff)
	}
}

// otherName is a line of the answers in _names.tpl.
var otherName = regexp.MustCompile(`(?m)^  "([A-Za-z.]+)" `)

// schema is the part of JSON schema that says which keys there are.
type schema struct {
	Ref        string            `json:"$ref"`
	Defs       map[string]schema `json:"$defs"`
	Properties map[string]schema `json:"properties"`
	Patterns   map[string]schema `json:"patternProperties"`
	Additional any               `json:"additionalProperties"`
}

func leaves(t *testing.T, defs map[string]schema, path string, s schema, out map[string]bool) {
	t.Helper()
	if s.Ref != "" {
		s = defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
	}
	if len(s.Properties) == 0 {
		out[path] = true
		return
	}
	if s.Additional != false {
		t.Errorf("the schema takes any key below %q", path)
	}
	if path != "" {
		path += "."
	}
	for name, p := range s.Properties {
		leaves(t, defs, path+name, p, out)
	}
}

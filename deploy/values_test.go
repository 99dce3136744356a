package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// value is one setting of the chart.
type value struct{ path, standard, comment string }

// values reads the settings of the chart, in their order: whatever has a comment is one. A key without a comment holds
// settings.
func values(t *testing.T) []value {
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

func settings(t *testing.T, under string, n *yaml.Node) (out []value) {
	t.Helper()
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		path, comment := under+key.Value, strings.TrimSpace(strings.ReplaceAll(key.HeadComment, "# ", ""))
		_, comment, _ = strings.Cut("\n\n"+comment, "\n\n")
		switch {
		case comment != "":
			out = append(out, value{path, flow(t, v), strings.TrimSpace(comment)})
		case v.Kind == yaml.MappingNode && len(v.Content) > 0:
			out = append(out, settings(t, path+".", v)...)
		default:
			t.Errorf("values.yaml says nothing of %s: write a comment above it", path)
		}
	}
	return out
}

// flow prints a value on one line.
func flow(t *testing.T, n *yaml.Node) string {
	t.Helper()
	if n.Kind == yaml.ScalarNode && n.Value == "" {
		return "empty"
	}
	var v any
	if err := n.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if n.Kind == yaml.ScalarNode {
		return fmt.Sprintf("`%v`", v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); s == "{}" || s == "[]" {
		return "none"
	}
	return "`" + strings.NewReplacer(`"`, "", ":", ": ", ",", ", ").Replace(string(text)) + "`"
}

// Marks of the part of README.md that is made of values.yaml.
const begin, end = "<!-- values -->\n", "<!-- end of values -->\n"

// readme is README.md with the table of the values that there are.
func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("README.md lacks %q or %q", begin, end)
	}
	table := "| value | default | meaning |\n|---|---|---|\n"
	for _, v := range values(t) {
		table += fmt.Sprintf("| `%s` | %s | %s |\n", v.path, v.standard, v.comment)
	}
	return before + begin + table + end + after
}

// schema is the part of JSON schema that says which keys there are.
type schema struct {
	Ref        string            `json:"$ref"`
	Defs       map[string]schema `json:"$defs"`
	Properties map[string]schema `json:"properties"`
	Additional any               `json:"additionalProperties"`
}

// TestTheSchemaKnowsTheValuesAndNoOthers keeps a misspelt value from being taken for none.
func TestTheSchemaKnowsTheValuesAndNoOthers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	delete(root.Properties, "global") // Helm puts it there for charts that hold others
	have := map[string]bool{}
	leaves(t, root.Defs, "", root, have)
	want := map[string]bool{}
	for _, v := range values(t) {
		want[v.path] = true
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("values.schema.json and values.yaml differ (-values +schema)\n%s", diff)
	}
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

package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
)

var update = flag.Bool("update", false, "rewrite the schema")

const schemaFile = "../policy.schema.json"

// schemaWriter writes the JSON schema of policy documents by the rules of package document. A general generator would
// have to be given most of them: what reads itself from text, which words are accepted, what may be left out.
type schemaWriter struct {
	comments map[string]string // of fields, by "Type.Field"
}

type object = map[string]any

func (w schemaWriter) of(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return w.of(t.Elem())
	}
	if words := wordsOf(t); words != nil {
		return object{"type": "string", "enum": words}
	}
	switch target := reflect.New(t).Interface().(type) {
	case interface{ Alone() any }:
		return object{"oneOf": []object{w.of(reflect.TypeOf(target.Alone()).Elem()), w.structure(t)}}
	case encoding.TextUnmarshaler:
		return object{"type": []string{"string", "number"}}
	case json.Unmarshaler:
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Struct:
		return w.structure(t)
	case reflect.Map:
		return object{"type": "object", "additionalProperties": w.of(t.Elem())}
	case reflect.Slice:
		return object{"type": "array", "items": w.of(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	}
	return object{"type": "integer"}
}

func (w schemaWriter) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	for i, name := range document.FieldNames(t) {
		if name == "" {
			continue
		}
		f := t.Field(i)
		property := w.of(f.Type)
		if words := fieldWords()[t.Name()+"."+f.Name]; words != nil {
			inner := property
			if items, ok := property["items"].(object); ok {
				inner = items
			}
			inner["enum"] = words
		}
		if text := w.comments[path.Base(t.PkgPath())+"."+t.Name()+"."+f.Name]; text != "" {
			property["description"] = text
		}
		properties[name] = property
		if !strings.Contains(f.Tag.Get("json"), ",omit") {
			required = append(required, name)
		}
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// wordsOf are the values of a type that has names for them.
func wordsOf(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[modes.Mode]():
		return texts(modes.All())
	case reflect.TypeFor[api.EnforcementMode]():
		return texts(enforcementModes())
	case reflect.TypeFor[modes.TemplatesMode]():
		return texts([]modes.TemplatesMode{modes.TemplatesOff, modes.TemplatesCheck, modes.TemplatesRewrite})
	case reflect.TypeFor[api.StrategyName]():
		return texts(strategies.Names())
	case reflect.TypeFor[api.Tier]():
		return texts(api.Tiers())
	case reflect.TypeFor[modes.NativeMode]():
		return texts([]modes.NativeMode{modes.NativeCheck, modes.NativeOff})
	case reflect.TypeFor[modes.ClaimsMode]():
		return texts([]modes.ClaimsMode{modes.ClaimsCount, modes.ClaimsDeny})
	case reflect.TypeFor[modes.MIGRounding]():
		return texts(modes.AllMIGRoundings())
	case reflect.TypeFor[strategies.MPSProviderName]():
		return texts(strategies.ProviderNames())
	}
	return nil
}

// fieldWords are the values of plain texts that accept some only.
func fieldWords() map[string][]string {
	return map[string][]string{
		"Policy.APIVersion":        {APIVersion},
		"Policy.Kind":              {"Policy"},
		"Policy.Accept":            spellings.Names(),
		"PoolSpec.Strategy":        texts(declarable()),
		"Switch.Arguments":         {frameworks.ArgumentsWarn, frameworks.ArgumentsRewrite, frameworks.ArgumentsDeny},
		"Switch.Shim":              shim.Modes(),
		"guardSpec.Mode":           {modes.GuardAuto, modes.GuardSidecar, modes.GuardAgent},
		"guardSpec.Act":            {string(limits.ActAlways), string(limits.ActPressure)},
		"guardSpec.Access":         {modes.AccessAuto, modes.AccessEnv, modes.AccessVolume, modes.AccessCDI},
		"guardSpec.MPSTermination": {string(limits.MPSTerminationObserve), string(limits.MPSTerminationSignal)},
	}
}

func texts[T ~string](words []T) (out []string) {
	for _, w := range words {
		out = append(out, string(w))
	}
	return out
}

// fieldComments reads what the source says of each field, which editors show.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	err := filepath.WalkDir("..", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if declared, ok := n.(*ast.TypeSpec); ok {
				addComments(comments, file.Name.Name, declared)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return comments
}

func addComments(comments map[string]string, pkg string, declared *ast.TypeSpec) {
	structure, ok := declared.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range structure.Fields.List {
		text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
		for _, name := range f.Names {
			comments[pkg+"."+declared.Name.Name+"."+name.Name] = text
		}
	}
}

// schema is the schema as it should lie in the file.
func schema(t *testing.T) []byte {
	t.Helper()
	out := schemaWriter{fieldComments(t)}.of(reflect.TypeFor[Policy]())
	out["$schema"] = "http://json-schema.org/draft-07/schema#"
	out["title"] = "gpuslice policy"
	byName := out["properties"].(object)["frameworks"].(object)
	byName["propertyNames"] = object{"enum": frameworks.Names()}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func TestSchemaFields(t *testing.T) {
	want := schema(t)
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the types say, go test ./policies/config -run Schema -update rewrites it (%v):\n%s",
			schemaFile, err, cmp.Diff(string(want), string(got)))
	}
}

// problemsBySchema is what the schema has against a document.
func problemsBySchema(t *testing.T, doc []byte) []error {
	t.Helper()
	file, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var s spec.Schema
	if err := json.Unmarshal(file, &s); err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal(doc, &value); err != nil {
		t.Fatal(err)
	}
	return validate.NewSchemaValidator(&s, nil, "", strfmt.Default).Validate(value).Errors
}

// TestSchemaValidates holds the samples, and every policy of a scenario that is good, against the schema.
func TestSchemaValidates(t *testing.T) {
	t.Parallel()
	documents := map[string][]byte{}
	for _, pattern := range []string{"../samples/*.yaml", "../../test/scenarios/cases/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			documents[file] = text
			if filepath.Ext(file) == ".txtar" {
				documents[file] = sectionOf(text, "policy.yaml")
			}
		}
	}
	for file, doc := range documents {
		if _, problems := Parse(file, doc); len(problems) > 0 {
			continue
		}
		for _, problem := range problemsBySchema(t, doc) {
			t.Errorf("%s: %v", file, problem)
		}
	}
}

// sectionOf is a section of a scenario.
func sectionOf(archive []byte, name string) []byte {
	for _, f := range txtar.Parse(archive).Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func TestSchemaRejects(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		"mode: opt-in", head + "colour: red", head + "mode: Transparent",
		head + "strategies: [mps, timeslicing]", head + "optOut: 'true'", head + "limits: [1]",
		head + "guard: {act: sometimes}", head + "accept: [hamy]", head + "pools: {declared: [{name: a}]}", head + "defaultSlice: {memory: [8]}",
	} {
		if len(problemsBySchema(t, []byte(doc))) == 0 {
			t.Errorf("nothing is said against %q", doc)
		}
	}
}

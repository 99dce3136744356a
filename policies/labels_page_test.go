package policies_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/policies/api"
)

func TestLabelsPage(t *testing.T) {
	t.Parallel()
	// LABELS.md is held against every constant Label... and Annotation... of the project.
	t.Run("has what the code knows", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile("LABELS.md")
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for _, m := range regexp.MustCompile("(?m)^- `("+api.Domain+"/[a-z-]+)[`:]").FindAllStringSubmatch(string(text), -1) {
			rows = append(rows, m[1])
		}
		slices.Sort(rows)
		if diff := cmp.Diff(namesInCode(t), rows); diff != "" {
			t.Errorf("(-code +LABELS.md):\n%s", diff)
		}
	})
}

// namesInCode are the values of all constants that name a label or an annotation under gpuslice's domain, each once.
func namesInCode(t *testing.T) (names []string) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			if constants, ok := declaration.(*ast.GenDecl); ok && constants.Tok == token.CONST {
				names = append(names, namesIn(constants)...)
			}
		}
		return nil
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("no constant names a label: %v", err)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func namesIn(constants *ast.GenDecl) (names []string) {
	for _, spec := range constants.Specs {
		value := spec.(*ast.ValueSpec)
		for i, name := range value.Names {
			kind := strings.ToLower(name.Name)
			if !strings.HasPrefix(kind, "label") && !strings.HasPrefix(kind, "annotation") || i >= len(value.Values) {
				continue
			}
			if text := constantText(value.Values[i]); strings.HasPrefix(text, api.Domain+"/") {
				names = append(names, text)
			}
		}
	}
	return names
}

// constantText is the text of a literal, of Domain, or of a sum of both; "" for anything else.
func constantText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.Ident:
		if e.Name == "Domain" {
			return api.Domain
		}
	case *ast.SelectorExpr:
		return constantText(e.Sel)
	case *ast.BinaryExpr:
		return constantText(e.X) + constantText(e.Y)
	}
	return ""
}

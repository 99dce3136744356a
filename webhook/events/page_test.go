package events

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
)

// prefix begins the reason of every Event.
const prefix = "GPUSlice"

// reasonText is what may be the reason of an Event.
var reasonText = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

func TestEventsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../EVENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range regexp.MustCompile("(?m)^- `("+prefix+"[A-Za-z0-9]+)`: .+\\. [A-Z]").FindAllStringSubmatch(string(text), -1) {
		rows = append(rows, row[1])
	}
	slices.Sort(rows)
	if diff := cmp.Diff(reasonsInCode(t), rows); diff != "" {
		t.Errorf("each reason has a row with when it is written and what to do (-code +EVENTS.md):\n%s", diff)
	}
}

// reasonsInCode are the values of all constants named reason... in the files that write Events, each once.
func reasonsInCode(t *testing.T) (reasons []string) {
	t.Helper()
	root := os.DirFS("../..")
	for _, folder := range []string{"webhook", "cmd", "certs", "guard"} {
		err := fs.WalkDir(root, folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, path)
			if err != nil {
				return err
			}
			if !strings.Contains(string(text), "webhook/events\"") &&
				!strings.HasPrefix(path, "webhook/events/") && !strings.Contains(string(text), `"`+prefix) {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if value, ok := n.(*ast.ValueSpec); ok {
					reasons = append(reasons, reasonsOf(t, path, value)...)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}

// reasonsOf are the reasons among the constants, each with the prefix. A sentence is no reason of an Event.
func reasonsOf(t *testing.T, path string, value *ast.ValueSpec) (reasons []string) {
	t.Helper()
	for i, name := range value.Names {
		if i >= len(value.Values) {
			break
		}
		literal, _ := value.Values[i].(*ast.BasicLit)
		if literal == nil || literal.Kind != token.STRING {
			continue
		}
		text, err := strconv.Unquote(literal.Value)
		named := strings.HasPrefix(strings.ToLower(name.Name), "reason")
		switch {
		case err != nil || !reasonText.MatchString(text):
		case named && !strings.HasPrefix(text, prefix):
			t.Errorf("%s: reason %q does not begin with %s", path, text, prefix)
		case strings.HasPrefix(text, prefix):
			reasons = append(reasons, text)
		}
	}
	return reasons
}

// TestReasonsOf keeps the check itself honest.
func TestReasonsOf(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a
const (
	reasonOne, reasonText = "GPUSliceOne", "a sentence"
	Other = 1
)`, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, spec := range file.Decls[0].(*ast.GenDecl).Specs {
		got = append(got, reasonsOf(t, "a.go", spec.(*ast.ValueSpec))...)
	}
	if !slices.Equal(got, []string{"GPUSliceOne"}) {
		t.Errorf("%q", got)
	}
}

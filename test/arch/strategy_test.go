package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// named is a strategy or an MPS provider: its name, the function that makes it, and the file of both.
type named struct{ name, constructor, file string }

// TestStrategyNames holds that adding a strategy or an MPS provider is one file and one line: no other file compares its
// name, declares it as a constant, or makes one to read a property of it.
func TestStrategyNames(t *testing.T) {
	files := parseFolders(t, "../../policies", "../../webhook")
	known := strategies(files)
	if len(known) < 7 {
		t.Fatalf("found %v, and there are four strategies and three MPS providers", known)
	}
	for path, file := range files {
		for _, found := range comparisons(path, file, known) {
			t.Errorf("%s %s: give Strategy or MPSProvider a property instead", path, found)
		}
	}
}

func TestStrategyNamesComparedAreFound(t *testing.T) {
	own, other := parse(t, "own.go", `package p
func mps() Strategy { return Strategy{Name: "mps", Doc: "x"} }
func is(s Strategy) bool { return s.Name == "mps" }`), parse(t, "other.go", `package p
const name StrategyName = "mps"
var all = []Strategy{mps()}
func f(s StrategyName) bool {
	switch s { case "mps": }
	return s == "mps" || slices.Contains([]StrategyName{"mps"}, s) || s == mps().Name
}`)
	known := strategies(map[string]*ast.File{"own.go": own, "other.go": other})
	if want := []named{{"mps", "mps", "own.go"}}; !slices.Equal(known, want) {
		t.Fatalf("found %v, want %v", known, want)
	}
	if got := comparisons("own.go", own, known); len(got) > 0 {
		t.Errorf("in its own file: %q", got)
	}
	if got := comparisons("other.go", other, known); len(got) != 5 {
		t.Errorf("five places compare the name, found: %q", got)
	}
}

// strategies finds what is made as Strategy{Name: "..."} or MPSProvider{Name: "..."}.
func strategies(files map[string]*ast.File) (out []named) {
	for path, file := range files {
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok && (isIdent(lit.Type, "Strategy") || isIdent(lit.Type, "Provider")) {
					for _, element := range lit.Elts {
						kv, ok := element.(*ast.KeyValueExpr)
						if name := ""; ok && isIdent(kv.Key, "Name") && literal(kv.Value, &name) {
							out = append(out, named{name, fn.Name.Name, path})
						}
					}
				}
				return true
			})
		}
	}
	return out
}

// comparisons finds where a file depends on a name that is not its own.
func comparisons(path string, file *ast.File, known []named) (found []string) {
	flag := func(e ast.Expr, how string) {
		name := ""
		for _, k := range known {
			if call, ok := e.(*ast.CallExpr); ok && k.file != path && isIdent(call.Fun, k.constructor) && len(call.Args) == 0 {
				found = append(found, how+" "+k.constructor+"()")
			}
			if k.file != path && literal(e, &name) && name == k.name {
				found = append(found, how+" "+strconv.Quote(name))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				flag(n.X, "compares")
				flag(n.Y, "compares")
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				flag(e, "compares")
			}
		case *ast.SelectorExpr:
			flag(n.X, "makes")
		case *ast.ValueSpec:
			for _, e := range n.Values {
				if isIdent(n.Type, "StrategyName") || isIdent(n.Type, "MPSProviderName") {
					flag(e, "declares")
				}
			}
		case *ast.CompositeLit:
			if list, ok := n.Type.(*ast.ArrayType); ok && (isIdent(list.Elt, "StrategyName") || isIdent(list.Elt, "MPSProviderName")) {
				for _, e := range n.Elts {
					flag(e, "lists")
				}
			}
		}
		return true
	})
	return found
}

// isIdent reports whether an expression is a name, of this package or of another.
func isIdent(e ast.Expr, name string) bool {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		return selector.Sel.Name == name
	}
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func literal(e ast.Expr, text *string) bool {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	value, err := strconv.Unquote(lit.Value)
	*text = value
	return err == nil
}

// parseFolders reads the Go files below the folders, tests left out.
func parseFolders(t *testing.T, folders ...string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files[path] = parse(t, path, nil)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func parse(t *testing.T, path string, source any) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

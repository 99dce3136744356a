package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Bounds of what a reader of one noun has to know.
const (
	maxInputMethods   = 3      // exported, of policies.Input: what decisions depend on, and no place for other functions
	maxPromiseImports = 10     // of this module: whoever reads a Promise needs no pools and no edits
	maxAgentPackages  = 25     // of this module, that cmd/agent reaches
	maxAgentLines     = 12_000 // in them, tests left out
	maxInternal       = 14     // packages under policies/internal
)

// TestInput holds that an Input is built whole, by those that know a cluster: whoever needs a part of it calls a function of the noun.
func TestInput(t *testing.T) {
	tr := sourceTree(t)
	builders := []string{"policies", "webhook/admission/cluster", "cmd/client/clusters"}
	for _, s := range tr.sources {
		if s.isTest() || strings.HasPrefix(s.path, "test/") || slices.Contains(builders, path.Dir(s.path)) {
			continue
		}
		for _, at := range partialInputs(s.ast) {
			t.Errorf("%s: builds a partial policies.Input", tr.files.Position(at.Pos()))
		}
	}
	if methods := methodsOf(tr.packages()["policies"], "Input"); len(methods) > maxInputMethods {
		t.Errorf("policies.Input exports %d methods, at most %d: %q", len(methods), maxInputMethods, methods)
	}
}

// TestInputFound keeps the checks honest.
func TestInputFound(t *testing.T) {
	tr, err := newTree(fstest.MapFS{"p/a.go": {Data: []byte(`package p
func (in Input) A() policies.Input { return policies.Input{} }
func (in *Input) B() any { return []any{policies.Input{Pod: nil}, &policies.Input{nil}} }
func (in Input) c() {}
func (o Other) D() {}`)}})
	if err != nil {
		t.Fatal(err)
	}
	sources := tr.packages()["p"]
	if got := len(partialInputs(sources[0].ast)); got != 2 {
		t.Errorf("found %d partial inputs, there are 2", got)
	}
	if got := methodsOf(sources, "Input"); !slices.Equal(got, []string{"A", "B"}) {
		t.Errorf("found the methods %q", got)
	}
}

// partialInputs are the literals of policies.Input with a field in them; one without is the zero value beside an error.
func partialInputs(file *ast.File) (found []ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && len(lit.Elts) > 0 {
			selector, ok := lit.Type.(*ast.SelectorExpr)
			if ok && selector.Sel.Name == "Input" && isIdent(selector.X, "policies") {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// methodsOf are the exported methods of a type.
func methodsOf(sources []source, name string) (methods []string) {
	for _, s := range sources {
		for _, decl := range s.ast.Decls {
			method, ok := decl.(*ast.FuncDecl)
			if !ok || method.Recv == nil || !method.Name.IsExported() {
				continue
			}
			of := method.Recv.List[0].Type
			if pointer, ok := of.(*ast.StarExpr); ok {
				of = pointer.X
			}
			if isIdent(of, name) {
				methods = append(methods, method.Name.Name)
			}
		}
	}
	return methods
}

func TestReach(t *testing.T) {
	var internal int
	for _, p := range list(t) {
		switch {
		case p.ImportPath == module+"/policies/promise":
			if own := ours(p.Imports); len(own) > maxPromiseImports {
				t.Errorf("policies/promise imports %d packages of this module, at most %d: %q", len(own), maxPromiseImports, own)
			}
		case p.ImportPath == module+"/cmd/agent":
			own := append(ours(p.Deps), p.ImportPath)
			lines, err := linesOf(sourceTree(t), own)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("cmd/agent reaches %d packages of %d lines", len(own), lines)
			t.Log(got)
			if len(own) > maxAgentPackages || lines > maxAgentLines {
				t.Errorf("%s, at most %d of %d: %q", got, maxAgentPackages, maxAgentLines, own)
			}
		case within(p.ImportPath, "policies/internal"):
			internal++
		}
	}
	if internal == 0 || internal > maxInternal {
		t.Errorf("policies/internal has %d packages, at most %d", internal, maxInternal)
	}
}

// ours are the paths of this module.
func ours(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !strings.HasPrefix(path, module+"/") })
}

// linesOf counts the lines of packages, tests left out.
func linesOf(tr *tree, paths []string) (lines int, err error) {
	packages := tr.packages()
	for _, importPath := range paths {
		for _, s := range packages[strings.TrimPrefix(importPath, module+"/")] {
			text, err := fs.ReadFile(tr.root, s.path)
			if err != nil {
				return 0, err
			}
			lines += bytes.Count(text, []byte("\n"))
		}
	}
	return lines, nil
}

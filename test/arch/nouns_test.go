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
	maxPromiseImports = 10     // of this module: whoever reads a Promise needs no pools and no edits
	maxAgentLines     = 12_000 // in packages of this module that cmd/agent reaches, tests left out
)

// TestInput holds that an Input is built whole, by those that know a cluster: whoever needs a part of it calls a function of the noun.
func TestInput(t *testing.T) {
	tr := sourceTree(t)
	builders := []string{"policies", "webhook/admission/cluster", "webhook/admission/watcher", "cmd/client/clusters"}
	for _, s := range tr.sources {
		if s.isTest() || strings.HasPrefix(s.path, "test/") || slices.Contains(builders, path.Dir(s.path)) {
			continue
		}
		for _, at := range partialInputs(s.ast) {
			t.Errorf("%s: builds a partial policies.Input", tr.files.Position(at.Pos()))
		}
	}
}

// TestInputFound keeps the check itself honest.
func TestInputFound(t *testing.T) {
	tr, err := newTree(fstest.MapFS{"p/a.go": {Data: []byte(`package p
func A() policies.Input { return policies.Input{} }
func B() any { return []any{policies.Input{Pod: nil}, &policies.Input{nil}} }`)}})
	if err != nil {
		t.Fatal(err)
	}
	sources := tr.packages()["p"]
	if got := len(partialInputs(sources[0].ast)); got != 2 {
		t.Errorf("found %d partial inputs, there are 2", got)
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

func TestReach(t *testing.T) {
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
			if lines > maxAgentLines {
				t.Errorf("%s, at most %d: %q", got, maxAgentLines, own)
			}
		}
	}
}

// ours are the paths of this module.
func ours(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(at string) bool { return !strings.HasPrefix(at, module+"/") })
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

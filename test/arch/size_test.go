package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// What a package of policies may hold, so that a reader can hold it too.
const (
	maxNames    = 160 // top-level names, methods left out
	maxExported = 40  // of the names; policies/api, the vocabulary, may have more
)

// size is what a package holds.
type size struct {
	names, exported []string
}

func TestPackageSize(t *testing.T) {
	sizes := policySizes(sourceTree(t))
	for _, folder := range slices.Sorted(maps.Keys(sizes)) {
		if problems := sizes[folder].problems(folder); len(problems) > 0 {
			t.Errorf("%s %s", folder, strings.Join(problems, "; "))
		}
	}
}

// TestPackageSizeProblems keeps the check itself honest.
func TestPackageSizeProblems(t *testing.T) {
	tr, err := newTree(fstest.MapFS{
		"policies/a.go":      {Data: []byte("package policies\n\nconst (\n\tA, b = 1, 2\n)\n\ntype C struct{}\n\nfunc (*C) Method() {}\n\nfunc (C) own() {}\n\nfunc D() {}\n\nvar _ = A\n")},
		"policies/a_test.go": {Data: []byte("package policies\n\nfunc E() {}\n")},
		"webhook/a.go":       {Data: []byte("package webhook\n\nfunc F() {}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	sizes := policySizes(tr)
	s := sizes["policies"]
	if got := fmt.Sprint(s.names, s.exported, len(sizes)); got != "[A b C D] [A C D] 1" {
		t.Errorf("measured %s", got)
	}
	many := size{names: make([]string, maxNames+1), exported: make([]string, maxExported+1)}
	if got := many.problems("policies"); len(got) != 2 {
		t.Errorf("two bounds are passed, found %q", got)
	}
	if got := (size{names: []string{"Find", "find"}}).problems("policies"); len(got) != 1 {
		t.Errorf("two names differ in case alone, found %q", got)
	}
	if got := many.problems("policies/api"); len(got) != 1 {
		t.Errorf("the vocabulary may be exported, found %q", got)
	}
}

func (s size) problems(folder string) (problems []string) {
	if n := len(s.names); n > maxNames {
		problems = append(problems, fmt.Sprintf("has %d top-level names, at most %d", n, maxNames))
	}
	if n := len(s.exported); n > maxExported && folder != "policies/api" {
		problems = append(problems, fmt.Sprintf("exports %d names, at most %d", n, maxExported))
	}
	byName := map[string]string{}
	for _, name := range s.names {
		if other, ok := byName[strings.ToLower(name)]; ok && name != "" {
			problems = append(problems, fmt.Sprintf("has %s and %s, which differ in case alone", other, name))
		}
		byName[strings.ToLower(name)] = name
	}
	return problems
}

func policySizes(tr *tree) map[string]size {
	out := map[string]size{}
	for folder, sources := range tr.packages() {
		if folder != "policies" && !strings.HasPrefix(folder, "policies/") {
			continue
		}
		var s size
		for _, file := range sources {
			for _, decl := range file.ast.Decls {
				s.names = append(s.names, declared(decl)...)
			}
		}
		for _, name := range s.names {
			if ast.IsExported(name) {
				s.exported = append(s.exported, name)
			}
		}
		out[folder] = s
	}
	return out
}

// declared are the package-wide names of a declaration.
func declared(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.Name != "init" {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
		if d.Tok == token.VAR {
			names = slices.DeleteFunc(names, func(n string) bool { return n == "_" })
		}
	}
	return names
}

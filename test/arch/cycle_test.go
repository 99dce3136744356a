package arch

import (
	"errors"
	"go/ast"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// maxCycle is how many files of a package may need each other: more than that is no set of files, but one file cut in pieces.
const maxCycle = 8

func TestFileCycles(t *testing.T) {
	tr := sourceTree(t)
	packages := tr.packages()
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		if cycle := longestCycle(tr.references(packages[folder])); len(cycle) > maxCycle {
			t.Errorf("%s: %d files refer to each other in a cycle, at most %d may: %s", folder, len(cycle), maxCycle, strings.Join(cycle, " "))
		}
	}
}

// TestFileCyclesFound keeps the check itself honest.
func TestFileCyclesFound(t *testing.T) {
	tr, err := newTree(fstest.MapFS{
		"p/function.go": {Data: []byte(`package p; import "unknown"; func f() { unknown.Call(); method(t{}) }; func method(v t) { v.m() }`)},
		"p/type.go":     {Data: []byte("package p; type t struct { n int }")},
		"p/method.go":   {Data: []byte("package p; func (t) m() { f() }")},
		"p/reader.go":   {Data: []byte("package p; func read() int { n := 1; f(); return n }")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := longestCycle(tr.references(tr.packages()["p"])); !slices.Equal(got, []string{"function.go", "method.go"}) {
		t.Errorf("the cycle is %q", got)
	}
}

// references are the files of a package that each of them refers to: names, fields and methods that are declared there.
// Types of other packages are not known; what is lost by that are references through their fields and results.
func (tr *tree) references(sources []source) map[string]map[string]bool {
	uses := map[*ast.Ident]types.Object{}
	config := types.Config{Error: func(error) {}, Importer: noPackages{}, FakeImportC: true}
	out := map[string]map[string]bool{}
	var files []*ast.File
	for _, s := range sources {
		files = append(files, s.ast)
		out[path.Base(s.path)] = map[string]bool{}
	}
	pkg, _ := config.Check("p", tr.files, files, &types.Info{Uses: uses}) // errors are those of imports
	for ident, object := range uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		from, to := path.Base(tr.files.Position(ident.Pos()).Filename), path.Base(tr.files.Position(object.Pos()).Filename)
		if from != to {
			out[from][to] = true
		}
	}
	return out
}

type noPackages struct{}

func (noPackages) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// longestCycle is the largest set of nodes of which each reaches each other.
func longestCycle(edges map[string]map[string]bool) (longest []string) {
	reached := map[string]map[string]bool{}
	for n := range edges {
		reached[n] = map[string]bool{}
		reach(edges, n, reached[n])
	}
	for _, n := range slices.Sorted(maps.Keys(edges)) {
		var cycle []string
		for _, other := range slices.Sorted(maps.Keys(reached[n])) {
			if reached[other][n] {
				cycle = append(cycle, other)
			}
		}
		if len(cycle) > len(longest) {
			longest = cycle
		}
	}
	return longest
}

func reach(edges map[string]map[string]bool, from string, seen map[string]bool) {
	for to := range edges[from] {
		if !seen[to] {
			seen[to] = true
			reach(edges, to, seen)
		}
	}
}

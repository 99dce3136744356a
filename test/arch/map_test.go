package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMaps holds the comments of packages against the tree: one that lists packages below it has each, and no other, and what it
// says not to be imported is not.
func TestMaps(t *testing.T) {
	tr := sourceTree(t)
	seen := 0
	for folder, doc := range tr.packageDocs() {
		names := tr.below(folder)
		if isMap(doc, names) {
			seen++
			for _, lie := range mapLies(doc, names) {
				t.Errorf("the comment of package %s: %s", folder, lie)
			}
		}
		for _, lie := range importLies(doc, tr.importsWithin(folder)) {
			t.Errorf("the comment of package %s: %s", folder, lie)
		}
	}
	if seen < 3 {
		t.Errorf("%d packages list those below them", seen)
	}
}

// TestMapsFound keeps the checks honest.
func TestMapsFound(t *testing.T) {
	tr, err := newTree(fstest.MapFS{
		"a/doc.go":          {Data: []byte("// Package a has packages.\n//\n//\tb    one\n//\told  one that left\n//\n// It imports no net, os or client.\npackage a\n")},
		"a/b/b.go":          {Data: []byte("package b\n\nimport _ \"net/http\"\n")},
		"a/c/c.go":          {Data: []byte("package c\n\nimport _ \"k8s.io/client-go/rest\"\n")},
		"a/b/b_test.go":     {Data: []byte("package b\n\nimport _ \"os\"\n")},
		"a/internal/d/d.go": {Data: []byte("package d\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc := tr.packageDocs()["a"]
	if names := tr.below("a"); fmt.Sprint(names) != "[b c internal/d]" || !isMap(doc, names) {
		t.Errorf("below a: %q", names)
	}
	if got := mapLies(doc, tr.below("a")); len(got) != 3 {
		t.Errorf("c and internal/d are missing and old is gone, found %q", got)
	}
	if got := importLies(doc, tr.importsWithin("a")); len(got) != 2 {
		t.Errorf("net and client are imported, found %q", got)
	}
}

// packageDocs are the comments of packages, by folder.
func (tr *tree) packageDocs() map[string]string {
	docs := map[string]string{}
	for folder, sources := range tr.packages() {
		for _, s := range sources {
			if s.ast.Doc != nil {
				docs[folder] += s.ast.Doc.Text()
			}
		}
	}
	return docs
}

// below are the packages below a folder, relative to it.
func (tr *tree) below(folder string) (names []string) {
	for _, other := range slices.Sorted(maps.Keys(tr.packages())) {
		if name, ok := strings.CutPrefix(other, folder+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// importsWithin are the paths that a folder's packages import.
func (tr *tree) importsWithin(folder string) (paths []string) {
	for other, sources := range tr.packages() {
		if other != folder && !strings.HasPrefix(other, folder+"/") {
			continue
		}
		for _, s := range sources {
			ast.Inspect(s.ast, func(n ast.Node) bool {
				if spec, ok := n.(*ast.ImportSpec); ok {
					paths = append(paths, strings.Trim(spec.Path.Value, `"`))
				}
				return true
			})
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// entry is a line of a list in a comment: a name, and blanks before what is said of it.
var entry = regexp.MustCompile(`(?m)^\t([a-z][\w/]*)  +\S`)

// listed are the entries of a comment.
func listed(doc string) (names []string) {
	for _, m := range entry.FindAllStringSubmatch(doc, -1) {
		names = append(names, m[1])
	}
	return names
}

// isMap reports whether a comment has a list of which an entry is a package below.
func isMap(doc string, below []string) bool {
	return slices.ContainsFunc(listed(doc), func(entry string) bool {
		return slices.ContainsFunc(below, func(name string) bool { return isNamed(name, entry) })
	})
}

// isNamed reports whether a word is a package's name: its path below the folder, or the end of it.
func isNamed(name, word string) bool { return name == word || strings.HasSuffix(name, "/"+word) }

var packageWord = regexp.MustCompile(`[\w/]+`)

// mapLies are the packages below that a list lacks, and the entries that are no package.
func mapLies(doc string, below []string) (lies []string) {
	words := packageWord.FindAllString(doc, -1)
	for _, name := range below {
		if !slices.ContainsFunc(words, func(w string) bool { return isNamed(name, w) }) {
			lies = append(lies, "package "+name+" is missing")
		}
	}
	for _, e := range listed(doc) {
		if !slices.ContainsFunc(below, func(name string) bool { return isNamed(name, e) || path.Dir(name) == e }) {
			lies = append(lies, "there is no package "+e)
		}
	}
	return lies
}

// importsNo is a sentence about what is not imported.
var importsNo = regexp.MustCompile(`imports? no ([^.:;]+)`)

// importLies are the imports that a comment denies. A name stands for a path, for those below it, and for the beginning of its
// last part: client for client-go.
func importLies(doc string, imports []string) (lies []string) {
	for _, m := range importsNo.FindAllStringSubmatch(doc, -1) {
		for _, w := range packageWord.FindAllString(m[1], -1) {
			if w == "no" || w == "or" || w == "and" {
				continue
			}
			for _, p := range imports {
				if p == w || strings.HasPrefix(p, w+"/") || strings.Contains("/"+p, "/"+w+"-") || strings.HasSuffix(p, "/"+w) {
					lies = append(lies, "it imports "+p)
				}
			}
		}
	}
	return lies
}

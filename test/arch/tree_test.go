package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// source is a Go file of the module.
type source struct {
	path string // from the module's root
	ast  *ast.File
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// tree is the module's source, read once for all tests.
type tree struct {
	root    fs.FS
	files   *token.FileSet
	sources []source // by path
	pages   []string // paths of Markdown files
}

var readTree = sync.OnceValues(func() (*tree, error) { return newTree(os.DirFS("../..")) })

func sourceTree(t *testing.T) *tree {
	t.Helper()
	tr, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// newTree reads a module. Folders of other modules, of test data and what git does not hold are left out.
func newTree(root fs.FS) (*tree, error) {
	tr := &tree{root: root, files: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && notOurs(root, name):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			tr.pages = append(tr.pages, name)
		case strings.HasSuffix(name, ".go"):
			text, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(tr.files, name, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			tr.sources = append(tr.sources, source{name, file})
		}
		return nil
	})
	return tr, err
}

func notOurs(root fs.FS, folder string) bool {
	base := path.Base(folder)
	if strings.HasPrefix(base, ".") || slices.Contains([]string{"testdata", "bin", "out"}, base) {
		return true
	}
	_, err := fs.Stat(root, folder+"/go.mod")
	return err == nil
}

// packages are the sources by folder, tests left out.
func (tr *tree) packages() map[string][]source {
	out := map[string][]source{}
	for _, s := range tr.sources {
		if !s.isTest() {
			out[path.Dir(s.path)] = append(out[path.Dir(s.path)], s)
		}
	}
	return out
}

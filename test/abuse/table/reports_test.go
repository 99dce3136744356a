package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage shows without carrying out an attack that "make abuse" has an attempt for each attack of the page: it runs the tests that the
// page names, and no others.
func TestPage(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsThatReport(t, root)
	for _, problem := range unreported(string(text), tests) {
		t.Error(problem)
	}
}

func TestUnreported(t *testing.T) {
	t.Parallel()
	const page = "**A1. Attack.** What stops it (`TestA1`).\n\n**A2. Attack.** What stops it (`TestOther`).\n"
	tests := []reporting{{"TestA1", "a", []string{"A1"}}, {"TestReports", "a", []string{"A2"}}}
	got := unreported(page, tests)
	if len(got) != 2 || !strings.HasPrefix(got[0], "A2: none of [TestOther]") || !strings.HasPrefix(got[1], "A2: TestReports in a") {
		t.Errorf("%q", got)
	}
}

// reporting is a test that "make abuse" can run, with the attacks that it reports.
type reporting struct {
	name, folder string
	threats      []string
}

// unreported returns the attacks of the page of whose tests none reports one, and the tests that report one and are not named there.
func unreported(page string, tests []reporting) (problems []string) {
	named := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?ms)^\*\*(A\d+)\. .+?\n(?:\n|\z)`).FindAllStringSubmatch(page, -1) {
		for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)").FindAllStringSubmatch(row[0], -1) {
			named[row[1]] = append(named[row[1]], m[1])
		}
	}
	for _, threat := range rows(page) {
		if !slices.ContainsFunc(tests, func(r reporting) bool {
			return slices.Contains(named[threat], r.name) && slices.Contains(r.threats, threat)
		}) {
			problems = append(problems, fmt.Sprintf("%s: none of %v reports it where \"make abuse\" runs it", threat, named[threat]))
		}
	}
	for _, r := range tests {
		for _, threat := range r.threats {
			if !slices.Contains(named[threat], r.name) {
				problems = append(problems, fmt.Sprintf("%s: %s in %s reports it, and the page does not name it there", threat, r.name, r.folder))
			}
		}
	}
	return problems
}

// testsThatReport returns the tests in the folders that "make abuse" tests.
func testsThatReport(t *testing.T, root string) (out []reporting) {
	t.Helper()
	for _, folder := range testedFolders(t, root) {
		out = append(out, testsOf(t, root, folder)...)
	}
	return out
}

// testedFolders are the folders that the Makefile names beside the attacks' tests.
func testedFolders(t *testing.T, root string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `-run "$(attacks)"`) {
			continue
		}
		for _, m := range regexp.MustCompile(` \./(\S+)`).FindAllStringSubmatch(line, -1) {
			folder, below := strings.CutSuffix(m[1], "/...")
			out = append(out, folder)
			if below {
				out = append(out, foldersBelow(t, root, folder)...)
			}
		}
	}
	return out
}

func foldersBelow(t *testing.T, root, folder string) (out []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != folder {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// declaration is what a function or variable of a package mentions.
type declaration struct {
	names, threats []string
	reports        bool
}

// testsOf returns the tests of one folder that report: those with an attempt in reach, of the attacks that stand in reach, or of the one
// that the test is named after.
func testsOf(t *testing.T, root, folder string) (out []reporting) {
	t.Helper()
	declared := map[string]*declaration{}
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			for _, of := range namesOf(d) {
				if declared[of] == nil {
					declared[of] = &declaration{}
				}
				declared[of].read(d)
			}
		}
	}
	for name := range declared {
		if threats := reach(declared, name); strings.HasPrefix(name, "Test") && len(threats) > 0 {
			out = append(out, reporting{name, folder, threats})
		}
	}
	slices.SortFunc(out, func(a, b reporting) int { return strings.Compare(a.name, b.name) })
	return out
}

// namesOf are the names that a declaration gives; of a method its own alone.
func namesOf(d ast.Decl) (out []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []string{d.Name.Name}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				for _, n := range v.Names {
					out = append(out, n.Name)
				}
			}
		}
	}
	return out
}

var (
	threatText = regexp.MustCompile(`^"(A\d+)"$`)
	threatTest = regexp.MustCompile(`^Test(A\d+)([A-Z]|$)`)
)

func (d *declaration) read(node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			d.names = append(d.names, n.Name)
			d.reports = d.reports || n.Name == "abuse"
		case *ast.BasicLit:
			if m := threatText.FindStringSubmatch(n.Value); m != nil {
				d.threats = append(d.threats, m[1])
			}
		}
		return true
	})
}

// reach returns the attacks that a test reports, in what it mentions itself and through others of its package.
func reach(declared map[string]*declaration, test string) (threats []string) {
	seen, next, reports := map[string]bool{}, []string{test}, false
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		d := declared[name]
		if d == nil || seen[name] || name != test && strings.HasPrefix(name, "Test") {
			continue
		}
		seen[name] = true
		reports = reports || d.reports
		threats = append(threats, d.threats...)
		next = append(next, d.names...)
	}
	if !reports {
		return nil
	}
	if m := threatTest.FindStringSubmatch(test); m != nil {
		threats = append(threats, m[1])
	}
	slices.Sort(threats)
	return slices.Compact(threats)
}

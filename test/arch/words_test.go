package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// word is one that the project does not use, and what it says instead: the term of Kubernetes, of NVIDIA or of Go.
type word struct {
	pattern string // of whole words, in lower case; those of an identifier are joined by "-"
	instead string
}

// words are not used in identifiers, texts of the code, comments or pages.
var words = []word{
	{`refus\w*`, "deny, denied, denial"},
	{`mend(s|ed|ing|er)?`, "remedy, fix, repair"},
	{`misfits?`, "FitError"},
	{`strangers?`, "unmanaged, unknown"},
	{`strays?`, "unmanaged, unknown"},
	{`mourn\w*`, "report the lost process"},
	{`innocent\w*`, "unrelated"},
	{`unsaid`, "without server defaults"},
	{`ungiven`, "hide devices, device visibility"},
	{`voided`, "devices-hidden"},
	{`left-alone`, "unchanged"},
	{`eyes?`, "sampler"},
	{`hands`, "terminator"},
	{`voices?`, "reporter, events"},
	{`says that`, "reports whether"},
	{`(is|are|was|were|be|been) told`, "gets a warning, an Event or a message"},
	{`(take|takes|taken|taking|took)[- ]back`, "revert, restore"},
	{`walls?`, "effective limit"},
	{`grips?`, "pidfd"},
	{`seiz\w*`, "acquire"},
	{`restful|hurried|look-aside`, "a name of what the period bounds"},
	{`doubts`, "lint"},
	{`widenings?`, "tighten error"},
	{`(pod|pods|image|node) of windows`, "Windows pods"},
}

// prose are words that names may have, but not comments, texts of the code and pages.
var prose = []word{
	{`ask(s|ed|ing)?`, "request, query, call, read"},
	{`tells|telling|told`, "show, report, distinguish"},
	{`anew`, "again, or a verb with re-"},
	{`lateness`, "delay"},
}

// maxWhat is how many of a hundred lines of comments may say "what": most of them can name it.
const maxWhat = 4

// phrases hold one of the words and are nobody's own.
var phrases = []string{"connection refused", "wall clock", "wall-clock", "wall time", "refused connection", "-wall", `json:"refused"`}

// logKeys are not used as keys of a log line either.
var logKeys = []word{
	{"why", "reason"}, {"says", "message"}, {"what", "object"}, {"told", "reported"}, {"took", "duration"},
}

// metricNames end in a base unit, or in none.
var metricNames = regexp.MustCompile(`^gpuslice_\w*_(percent|milliseconds|ms|minutes|mib|mebibytes)(_|$)`)

func TestWords(t *testing.T) {
	tr := sourceTree(t)
	for _, s := range tr.sources {
		if strings.HasPrefix(s.path, "test/arch/") { // the words stand here
			continue
		}
		for _, found := range wordsIn(tr.files, s) {
			t.Error(found)
		}
	}
	if lines, what := whatIn(tr); what*100 > lines*maxWhat {
		t.Errorf("%d of %d lines of comments say \"what\"; at most %d %% may", what, lines, maxWhat)
	}
	for _, page := range tr.pages {
		text, err := fs.ReadFile(tr.root, page)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			problems := wordsOf(line)
			if page != "CHANGELOG.md" {
				problems = append(problems, proseOf(line)...)
			}
			for _, problem := range problems {
				t.Errorf("%s:%d: %s", page, n+1, problem)
			}
		}
	}
	cases, err := fs.Glob(tr.root, "test/scenarios/cases/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cases {
		text, err := fs.ReadFile(tr.root, name)
		if err != nil {
			t.Fatal(err)
		}
		about, _, _ := strings.Cut(string(text), "\n-- ")
		for _, problem := range append(wordsOf(about), wordsOf(path.Base(name))...) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// TestWordsFound keeps the check itself honest.
func TestWordsFound(t *testing.T) {
	const code = `// Package p refuses.
package p

import "example.com/refuse"

type podEyes struct { Mend string ` + "`json:\"mend\"`" + ` } // says that

// told is what a pod asks for.

func takeBack(l logger) {
	recommended, hands := "connection refused", 1
	l.Info("decided", "why", hands, "object", recommended)
	flag.Bool("refuse", false, "the pod is told")
	_ = "gpuslice_memory_percent"
}
`
	tr, err := newTree(fstest.MapFS{"p/a.go": {Data: []byte(code)}})
	if err != nil {
		t.Fatal(err)
	}
	got := wordsIn(tr.files, tr.sources[0])
	want := []string{
		`p/a.go:1: "refuses": say deny, denied, denial`,
		`p/a.go:6: "eyes": say sampler`,
		`p/a.go:6: "mend": say remedy, fix, repair`,
		`p/a.go:6: "mend": say remedy, fix, repair`,
		`p/a.go:6: "says that": say reports whether`,
		`p/a.go:8: "asks": say request, query, call, read`,
		`p/a.go:10: "take-back": say revert, restore`,
		`p/a.go:11: "hands": say terminator`,
		`p/a.go:12: the log key "why": say reason`,
		`p/a.go:13: "refuse": say deny, denied, denial`,
		`p/a.go:13: "is told": say gets a warning, an Event or a message`,
		`p/a.go:13: "told": say show, report, distinguish`,
		`p/a.go:14: the metric "gpuslice_memory_percent": use a base unit`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// wordsIn lists the words of a file that have another to be said instead, each with its line.
func wordsIn(files *token.FileSet, s source) (found []string) {
	add := func(at token.Pos, problems ...string) {
		for _, p := range problems {
			found = append(found, fmt.Sprintf("%s:%d: %s", s.path, files.Position(at).Line, p))
		}
	}
	for _, group := range s.ast.Comments {
		for _, c := range group.List {
			for n, line := range strings.Split(c.Text, "\n") {
				problems := wordsOf(line)
				if !s.isTest() {
					problems = append(problems, proseOf(nameFirst.ReplaceAllString(line, ""))...)
				}
				for _, p := range problems {
					found = append(found, fmt.Sprintf("%s:%d: %s", s.path, files.Position(c.Pos()).Line+n, p))
				}
			}
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				add(n.Pos(), wordsOf(text)...)
				if !s.isTest() {
					add(n.Pos(), proseOf(text)...)
				}
				if metricNames.MatchString(text) {
					add(n.Pos(), fmt.Sprintf("the metric %q: use a base unit", text))
				}
			}
		case *ast.CallExpr:
			for key, at := range keysOf(n) {
				for _, w := range logKeys {
					if key == w.pattern {
						add(at, fmt.Sprintf("the log key %q: say %s", key, w.instead))
					}
				}
			}
		}
		for _, name := range namesDeclared(n) {
			add(name.Pos(), wordsOf(split(name.Name))...)
		}
		return true
	})
	return found
}

// nameFirst is the name that a doc comment begins with.
var nameFirst = regexp.MustCompile(`^//\s*\w+`)

// whatIn counts the lines of comments outside tests, and those with "what".
func whatIn(tr *tree) (lines, what int) {
	word := regexp.MustCompile(`(?i)\bwhat\b`)
	for _, s := range tr.sources {
		if s.isTest() {
			continue
		}
		for _, group := range s.ast.Comments {
			for _, c := range group.List {
				lines++
				if word.MatchString(c.Text) {
					what++
				}
			}
		}
	}
	return lines, what
}

// wordList is words, compiled. One expression finds texts without any of them, nearly all, many times faster than one for each word.
type wordList struct {
	words []word
	any   *regexp.Regexp
	each  []*regexp.Regexp
}

func compile(words []word) wordList {
	l := wordList{words: words}
	var patterns []string
	for _, w := range words {
		patterns = append(patterns, w.pattern)
		l.each = append(l.each, regexp.MustCompile(`\b(`+w.pattern+`)\b`))
	}
	l.any = regexp.MustCompile(`\b(` + strings.Join(patterns, "|") + `)\b`)
	return l
}

var compiledWords, compiledProse = compile(words), compile(prose)

// wordsOf lists the words of a text that are not used anywhere, each with its replacement.
func wordsOf(text string) []string { return compiledWords.problems(text) }

// proseOf lists those that are not used in prose.
func proseOf(text string) []string { return compiledProse.problems(text) }

func (l wordList) problems(text string) (problems []string) {
	text = strings.ToLower(text)
	if !l.any.MatchString(text) {
		return nil
	}
	for _, p := range phrases {
		text = strings.ReplaceAll(text, p, "")
	}
	for i, w := range l.words {
		if found := l.each[i].FindString(text); found != "" {
			problems = append(problems, fmt.Sprintf("%q: say %s", found, w.instead))
		}
	}
	return problems
}

// namesDeclared are the identifiers that a node introduces.
func namesDeclared(n ast.Node) (names []*ast.Ident) {
	switch n := n.(type) {
	case *ast.File:
		names = append(names, n.Name)
	case *ast.FuncDecl:
		names = append(names, n.Name)
	case *ast.TypeSpec:
		names = append(names, n.Name)
	case *ast.ValueSpec:
		names = n.Names
	case *ast.Field:
		names = n.Names
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok {
					names = append(names, id)
				}
			}
		}
	case *ast.RangeStmt:
		for _, e := range []ast.Expr{n.Key, n.Value} {
			if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
				names = append(names, id)
			}
		}
	}
	return names
}

// split makes words of an identifier: takeBack and take_back are "take-back".
func split(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ReplaceAll(b.String(), "_", "-")
}

// keysOf are the keys of a call that logs: of slog and logr, a message and then pairs.
func keysOf(call *ast.CallExpr) map[string]token.Pos {
	keys := map[string]token.Pos{}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return keys
	}
	first := -1
	switch selector.Sel.Name {
	case "Info", "Warn", "Debug":
		first = 1
	case "Error", "InfoContext", "WarnContext", "DebugContext", "ErrorContext": // logr's Error has an error first
		first = 2
	case "With", "WithValues":
		first = 0
	case "String", "Int", "Any", "Bool", "Duration", "Group":
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "slog" && len(call.Args) > 0 {
			call, first = &ast.CallExpr{Args: call.Args[:1]}, 0
		}
	}
	if first < 0 {
		return keys
	}
	for _, e := range call.Args[min(first, len(call.Args)):] {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				keys[text] = lit.Pos()
			}
		}
	}
	return keys
}

package commandline

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Bounds on what is read of a shell's script: the parser calls itself for each nested command.
const (
	scriptLimit = 8 << 10
	valueLimit  = 1 << 10 // of a variable that a script uses
	nestedLimit = 3       // scripts in scripts
)

// Given is one word as a program gets it.
type Given struct {
	Text   string
	Opaque bool // it depends on what is known at run time only; Text is how it is written
	Many   bool // opaque, and possibly several words or none
}

var (
	errTwice     = errors.New("it runs more than once")
	errTooLong   = fmt.Errorf("the script is longer than %d bytes", scriptLimit)
	errRewritten = errors.New("the script changes what its words mean")
)

// ErrElsewhere and ErrIdle are why none of the commands is found: another program, or a file, may start one; or nothing does.
var (
	ErrElsewhere = errors.New("its command line is a script, or not that of a program that is known to take it")
	ErrIdle      = errors.New("its command line starts nothing that takes it")
)

// GivenTo returns the words behind a command of which one is among commands, as the program that it starts gets them: a shell's
// script is read by the shell's grammar. Without one of the commands the words of a container without a command go to its image's
// entrypoint. The error is why the words are not known.
func GivenTo(c *corev1.Container, commands [][]string) ([]Given, error) {
	f := finder{container: c, commands: commands}
	var argv []Given
	budget := wordsLimit
	for _, text := range slices.Concat(c.Command, c.Args) {
		word, err := f.kubelet(text)
		if budget -= len(word); budget < 0 {
			return nil, errTooLong
		}
		if err != nil {
			argv = append(argv, Given{Text: text, Opaque: true})
			continue
		}
		argv = append(argv, Given{Text: word})
	}
	f.run(argv, 0)
	switch {
	case f.err != nil:
		return nil, f.err
	case len(f.found) > 1:
		return nil, errTwice
	case len(f.found) == 1:
		return f.found[0], nil
	case len(c.Command) == 0 && !f.shells:
		return argv, nil
	}
	if f.idle && !f.others {
		return nil, ErrIdle
	}
	return nil, ErrElsewhere
}

// finder looks for the programs that a command line starts.
type finder struct {
	container *corev1.Container
	commands  [][]string
	found     [][]Given
	shells    bool
	idle      bool // a program that starts no other is run
	others    bool // a program is run that may start one of the commands
	err       error
}

func (f *finder) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// run reads the words of one command, of which the first is a program or leads on to one.
func (f *finder) run(words []Given, depth int) {
	start := true
	for i := range words {
		at := Word{Text: words[i].Text, Start: start && !words[i].Opaque}
		for _, command := range f.commands {
			if len(words)-i < len(command) {
				continue
			}
			part := []Word{at}
			for _, w := range words[i+1 : i+len(command)] {
				part = append(part, Word{Text: w.Text})
			}
			if RunsAt(part, command) {
				f.found = append(f.found, words[i+len(command):])
				return
			}
		}
		if at.Start && isShell(at.Text) {
			f.shell(path.Base(at.Text), words[i+1:], depth)
			return
		}
		was := start
		start = at.Start && (leadsOn(at.Text) || at.Text == "command")
		if was && !start {
			f.note(words[i])
		}
	}
}

// note records whether a program that is none of the commands may start one.
func (f *finder) note(program Given) {
	switch path.Base(program.Text) {
	case "sleep", "tail", "cat", "echo", "printf", "true", ":", "[", "test", "date", "ls", "id", "hostname", "mkdir", "nvidia-smi",
		"export", "set", "trap", "wait", "cd", "exit":
		f.idle = f.idle || !program.Opaque
		f.others = f.others || program.Opaque
	default:
		f.others = true
	}
}

func isShell(text string) bool {
	switch path.Base(text) {
	case "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox":
		return true
	}
	return false
}

// shell reads the words behind a shell's name: options, of which one with a c has the script follow the others, then the script,
// then $0 and the script's own words.
func (f *finder) shell(name string, words []Given, depth int) {
	f.shells = true
	script := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		option := len(w.Text) > 1 && (w.Text[0] == '-' || w.Text[0] == '+')
		switch {
		case w.Opaque:
			f.fail(errors.New("a shell's words are known at run time only"))
			return
		case name == "busybox" && isShell(w.Text):
			name = path.Base(w.Text)
		case option && strings.HasPrefix(w.Text, "--"):
			if w.Text == "--rcfile" || w.Text == "--init-file" {
				i++
			}
		case option:
			script = script || w.Text[0] == '-' && strings.Contains(w.Text, "c")
			if strings.HasSuffix(w.Text, "o") || strings.HasSuffix(w.Text, "O") {
				i++
			}
		case script:
			f.script(name, w.Text, words[i+1:], depth)
			return
		default:
			f.others = true // a file, which nobody can read here
			return
		}
	}
}

// script reads the commands of a shell's script; positional are $0 and those behind it.
func (f *finder) script(name, text string, positional []Given, depth int) {
	if len(text) > scriptLimit || depth >= nestedLimit {
		f.fail(errTooLong)
		return
	}
	variant := syntax.LangPOSIX
	switch name {
	case "bash", "zsh", "ksh", "mksh":
		variant = syntax.LangBash
	}
	file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
	if err != nil {
		f.fail(fmt.Errorf("the script cannot be read: %w", err))
		return
	}
	s := script{finder: f, text: text, positional: positional, assigned: map[string]bool{}}
	var calls []*syntax.CallExpr
	syntax.Walk(file, func(node syntax.Node) bool {
		s.note(node)
		if call, ok := node.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			calls = append(calls, call)
		}
		return true
	})
	before := len(f.found)
	for _, call := range calls {
		f.run(s.words(call.Args), depth+1)
	}
	if s.rewrites && (len(f.found) > before || len(calls) > 0) {
		f.fail(errRewritten)
	}
}

// script is one script while its words are read.
type script struct {
	finder     *finder
	text       string
	positional []Given
	assigned   map[string]bool // variables that the script sets
	rewrites   bool            // it defines functions, or reads commands from elsewhere
	shifts     bool            // it changes $1 and those behind it
}

// note notes what changes the meaning of words elsewhere in the script.
func (s *script) note(node syntax.Node) {
	switch n := node.(type) {
	case *syntax.FuncDecl:
		s.rewrites = true
	case *syntax.Assign:
		if n.Name != nil {
			s.assigned[n.Name.Value] = true
		}
	case *syntax.WordIter:
		s.assigned[n.Name.Value] = true
	case *syntax.ParamExp:
		if n.Exp != nil && n.Param != nil {
			s.assigned[n.Param.Value] = true
		}
	case *syntax.CallExpr:
		if len(n.Args) > 0 {
			s.noteCall(n)
		}
	}
}

func (s *script) noteCall(call *syntax.CallExpr) {
	switch program := call.Args[0].Lit(); program {
	case "eval", "source", ".", "alias", "unalias", "builtin", "enable", "hash":
		s.rewrites = true
	case "shift":
		s.shifts = true
	case "set":
		s.shifts = s.shifts || slices.ContainsFunc(call.Args[1:], func(w *syntax.Word) bool {
			text := w.Lit()
			return text == "" || text[0] != '-' && text[0] != '+' && text != "pipefail" || text == "--" || text == "-"
		})
	case "export", "readonly", "local", "declare", "typeset", "read", "unset", "getopts", "mapfile", "readarray", "printf", "let":
		for _, w := range call.Args[1:] {
			name, _, _ := strings.Cut(s.source(w), "=")
			s.assigned[strings.Trim(name, `"'`)] = true
			s.rewrites = s.rewrites || program != "printf" && w.Lit() == "" && strings.HasPrefix(name, "$")
		}
	}
}

func (s *script) source(w *syntax.Word) string { return s.text[w.Pos().Offset():w.End().Offset()] }

// words are the words that the shell makes of those of a command.
func (s *script) words(args []*syntax.Word) (out []Given) {
	for _, w := range args {
		if s.isAll(w) {
			if len(s.positional) > 0 {
				out = append(out, s.positional[1:]...)
			}
			continue
		}
		many, known := s.read(w.Parts, false)
		if known {
			if fields, err := expand.Fields(&expand.Config{Env: expand.FuncEnviron(s.value), NoUnset: true}, w); err == nil {
				for _, text := range fields {
					out = append(out, Given{Text: text})
				}
				continue
			}
		}
		out = append(out, Given{Text: s.source(w), Opaque: true, Many: many})
	}
	return out
}

// isAll reports whether the word is "$@" with the words that the shell was started with.
func (s *script) isAll(w *syntax.Word) bool {
	if len(w.Parts) != 1 || s.shifts {
		return false
	}
	quoted, ok := w.Parts[0].(*syntax.DblQuoted)
	if !ok || len(quoted.Parts) != 1 {
		return false
	}
	param, ok := quoted.Parts[0].(*syntax.ParamExp)
	return ok && replaced(param) && param.Param.Value == "@" &&
		!slices.ContainsFunc(s.positional, func(g Given) bool { return g.Many })
}

// read reports whether the parts of a word are known, and whether they may become other than one word.
func (s *script) read(parts []syntax.WordPart, quoted bool) (many, known bool) {
	known = true
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.SglQuoted:
			known = known && !p.Dollar
		case *syntax.Lit:
			if !quoted && strings.ContainsAny(p.Value, "*?[{~") {
				many, known = true, false
			}
		case *syntax.DblQuoted:
			within, ok := s.read(p.Parts, true)
			many, known = many || within, known && ok && !p.Dollar
		case *syntax.ParamExp:
			value := ""
			if replaced(p) && !strings.Contains("@*#?-$!_", p.Param.Value) {
				value = s.value(p.Param.Value)
			} else {
				many = true
			}
			if value == "" || !quoted && strings.ContainsAny(value, "*?[") {
				known = false
			}
			many = many || !quoted
		default:
			many, known = true, false
		}
	}
	return many, known
}

// replaced reports whether a parameter is replaced by its value, and nothing else.
func replaced(p *syntax.ParamExp) bool {
	return p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.NestedParam == nil && p.Index == nil && p.Slice == nil &&
		p.Repl == nil && p.Exp == nil && p.Names == 0 && p.Param != nil && len(p.Modifiers) == 0
}

// value is a variable's value; "" where it is empty or not known.
func (s *script) value(name string) string {
	if len(name) == 1 && name[0] >= '0' && name[0] <= '9' {
		i := int(name[0] - '0')
		if s.shifts && i > 0 || i >= len(s.positional) || s.positional[i].Opaque || len(s.positional[i].Text) > valueLimit {
			return ""
		}
		return s.positional[i].Text
	}
	if s.assigned[name] || s.assigned["IFS"] || s.rewrites {
		return ""
	}
	if _, set := s.finder.variable("IFS"); set {
		return ""
	}
	value, _ := s.finder.variable(name)
	if len(value) > valueLimit {
		return ""
	}
	return value
}

// variable is the value that the pod gives a variable; "" where it is known at run time only.
func (f *finder) variable(name string) (value string, set bool) {
	for i := len(f.container.Env) - 1; i >= 0; i-- {
		if e := &f.container.Env[i]; e.Name == name {
			if e.ValueFrom != nil || strings.Contains(e.Value, "$") {
				return "", true
			}
			return e.Value, true
		}
	}
	return "", false
}

// kubelet replaces the references $(NAME) as the kubelet does before it starts a container.
func (f *finder) kubelet(text string) (string, error) {
	if !strings.Contains(text, "$(") && !strings.Contains(text, "$$") {
		return text, nil
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		switch text[i+1] {
		case '$':
			out.WriteByte('$')
			i++
		case '(':
			name, _, closed := strings.Cut(text[i+2:], ")")
			value, set := f.variable(name)
			switch {
			case !closed || !set && len(f.container.EnvFrom) == 0:
				out.WriteByte('$')
			case value == "" || out.Len()+len(value) > wordsLimit:
				return "", errors.New(name + " is known at run time only")
			default:
				out.WriteString(value)
				i += len(name) + 2
			}
		default:
			out.WriteByte('$')
		}
	}
	return out.String(), nil
}

// FlagIn returns the value of a flag among the words that a program gets: the last one counts. The error is why another value than
// that may count.
func FlagIn(words []Given, flag string) (value Given, found bool, err error) {
	if end := slices.IndexFunc(words, func(w Given) bool { return w.Text == "--" }); end >= 0 {
		words = words[:end]
	}
	for i := len(words) - 1; i >= 0; i-- {
		name, text, assigned := strings.Cut(words[i].Text, "=")
		name = strings.ReplaceAll(name, "_", "-")
		switch {
		case words[i].Opaque && (words[i].Many || mayName(words[i].Text, flag)),
			len(name) > 2 && name != flag && strings.HasPrefix(flag, name):
			if err == nil {
				err = fmt.Errorf("%s behind it may be another", words[i].Text)
			}
			continue
		case name != flag:
			continue
		case assigned:
			return Given{Text: text, Opaque: words[i].Opaque, Many: words[i].Many}, true, err
		case i+1 < len(words):
			return words[i+1], true, behind(words[i+2:], flag)
		}
		return Given{}, true, err
	}
	return Given{}, false, err
}

// behind is the error of the words behind a flag's value.
func behind(words []Given, flag string) error {
	_, _, err := FlagIn(words, flag)
	return err
}

// mayName reports whether a word that is known in part may be the flag.
func mayName(text, flag string) bool {
	text = strings.TrimLeft(text, `"'`)
	known, _, _ := strings.Cut(text, "$")
	known = strings.ReplaceAll(known, "_", "-")
	return known == "" || strings.HasPrefix(flag+"=", known) || strings.HasPrefix(known, flag+"=")
}

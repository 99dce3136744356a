package commandline

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// wordsLimit bounds how many bytes of command and args are read.
const wordsLimit = 256 << 10

// Word is one word of a command line.
type Word struct {
	Text  string
	Start bool // a command may begin here
	Shell bool // a shell reads it, and replaces variables
}

// Split returns the words of command and args, with the text that a shell runs (the word after -c) split as the shell
// would: quotes and operators are understood, variables are left as they are.
func Split(c *corev1.Container) []Word {
	words := make([]Word, 0, len(c.Command)+len(c.Args))
	budget, start, script := wordsLimit, true, false
	for _, list := range [2][]string{c.Command, c.Args} {
		for _, text := range list {
			if budget -= len(text); budget < 0 {
				return words
			}
			if script {
				words = append(words, shellWords(text)...)
				script = false
				continue
			}
			words = append(words, Word{Text: text, Start: start})
			script = runsScript(text)
			start = start && leadsOn(text)
		}
	}
	return words
}

// Plain returns the words of command and args as they stand, whatever a shell among them would make of them.
func Plain(c *corev1.Container) []Word {
	words := make([]Word, 0, len(c.Command)+len(c.Args))
	budget, start := wordsLimit, true
	for _, text := range slices.Concat(c.Command, c.Args) {
		if budget -= len(text); budget < 0 {
			return words
		}
		words = append(words, Word{Text: text, Start: start})
		start = start && leadsOn(text)
	}
	return words
}

// runsScript reports whether a shell's option makes its next argument the script: -c, -ec, -lc.
func runsScript(text string) bool {
	return len(text) >= 2 && len(text) <= 6 && text[0] == '-' && text[1] != '-' && text[len(text)-1] == 'c'
}

// leadsOn reports whether a word only leads to the command behind it, such as an init or an assignment.
func leadsOn(text string) bool {
	switch path.Base(text) {
	case "exec", "gpuslice-exec", "env", "nohup", "tini", "dumb-init", "time", "nice", "--", "-g", "-s", "then", "else", "do", "!", "{":
		return true
	}
	name, _, assigned := strings.Cut(text, "=")
	return assigned && variablePattern.MatchString(name)
}

// shell collects the words of a script.
type shell struct {
	words  []Word
	word   strings.Builder
	inWord bool
	start  bool
}

func (s *shell) put(c byte) {
	s.word.WriteByte(c)
	s.inWord = true
}

func (s *shell) end() {
	if !s.inWord {
		return
	}
	text := s.word.String()
	s.words = append(s.words, Word{Text: text, Start: s.start, Shell: true})
	s.start = s.start && leadsOn(text)
	s.word.Reset()
	s.inWord = false
}

// shellWords splits a script into words. It never fails: an open quote ends with the text.
func shellWords(text string) []Word {
	s := shell{start: true}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			if i++; i < len(text) && text[i] != '\n' {
				s.put(text[i])
			}
		case c == '\'' || c == '"':
			i = s.quoted(text, i)
		case c == '$' && strings.HasPrefix(text[i:], "$("):
			i = s.reference(text, i)
		case c == ' ' || c == '\t' || c == '\r':
			s.end()
		case strings.IndexByte("\n;&|()", c) >= 0:
			s.end()
			s.start = true
		default:
			s.put(c)
		}
	}
	s.end()
	return s.words
}

// quoted takes the text from the quote at i to its fellow, and returns where that is.
func (s *shell) quoted(text string, i int) int {
	quote := text[i]
	s.inWord = true
	for i++; i < len(text) && text[i] != quote; i++ {
		if text[i] == '\\' && quote == '"' && i+1 < len(text) {
			i++
		}
		s.put(text[i])
	}
	return i
}

// reference takes "$(NAME)", which the kubelet replaces before a shell sees it; any other "$(" is the shell's own.
func (s *shell) reference(text string, i int) int {
	name, _, closed := strings.Cut(text[i+2:], ")")
	if !closed || !variablePattern.MatchString(name) {
		s.put('$')
		return i
	}
	for _, c := range []byte("$(" + name + ")") {
		s.put(c)
	}
	return i + len(name) + 2
}

// Runs reports whether the words run a command. A command whose first word begins with a dash, such as
// "-m vllm.entrypoints.*", may stand anywhere; another only where a command begins, under any directory.
func Runs(words []Word, command []string) bool {
	for i := range words {
		if len(words)-i < len(command) {
			return false
		}
		if RunsAt(words[i:], command) {
			return true
		}
	}
	return false
}

// RunsAt reports whether they run it at their beginning.
func RunsAt(words []Word, command []string) bool {
	if !strings.HasPrefix(command[0], "-") && !words[0].Start {
		return false
	}
	for i, want := range command {
		got := words[i].Text
		if i == 0 && words[0].Start {
			got = path.Base(got)
		}
		if !Glob(want, got) {
			return false
		}
	}
	return true
}

// Flag returns the value of a flag, written "--flag value" or "--flag=value" and with dashes or underscores. The last
// one counts, as in the argument parsers of the frameworks.
func Flag(words []Word, flag string) (value string, found bool) {
	for i := len(words) - 1; i >= 0; i-- {
		name, value, assigned := strings.Cut(words[i].Text, "=")
		if !strings.HasPrefix(name, "-") || strings.ReplaceAll(name, "_", "-") != flag {
			continue
		}
		if !assigned && i+1 < len(words) {
			value = words[i+1].Text
		}
		return value, true
	}
	return "", false
}

// Glob is path.Match with a shortcut for texts without a wildcard, which is nearly all of them.
func Glob(pattern, text string) bool {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return pattern == text
	}
	ok, err := path.Match(pattern, text)
	return err == nil && ok
}

// IsVariable reports whether a shell can export a variable of that name.
func IsVariable(name string) bool { return variablePattern.MatchString(name) }

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

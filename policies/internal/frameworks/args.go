package frameworks

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// wordsLimit bounds how many bytes of command and args are read.
const wordsLimit = 256 << 10

// word is one word of a container's command line; start reports whether a command may begin there.
type word struct {
	text  string
	start bool
}

// words returns the words of command and args, with the text that a shell runs (the word after -c) split as the shell
// would: quotes and operators are understood, variables are left as they are.
func words(c *corev1.Container) []word {
	words := make([]word, 0, len(c.Command)+len(c.Args))
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
			words = append(words, word{text, start})
			script = runsScript(text)
			start = start && leadsOn(text)
		}
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
	case "exec", "env", "nohup", "tini", "dumb-init", "time", "nice", "--", "-g", "-s", "then", "else", "do", "!", "{":
		return true
	}
	name, _, assigned := strings.Cut(text, "=")
	return assigned && variablePattern.MatchString(name)
}

// shell collects the words of a script.
type shell struct {
	words  []word
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
	s.words = append(s.words, word{text, s.start})
	s.start = s.start && leadsOn(text)
	s.word.Reset()
	s.inWord = false
}

// shellWords splits a script into words. It never fails: an open quote ends with the text.
func shellWords(text string) []word {
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

// hasCommand reports whether the words run a command. A command whose first word begins with a dash, such as
// "-m vllm.entrypoints.*", may stand anywhere; another only where a command begins, under any directory.
func hasCommand(words []word, command []string) bool {
	for i := range words {
		if len(words)-i < len(command) {
			return false
		}
		if commandAt(words[i:], command) {
			return true
		}
	}
	return false
}

func commandAt(words []word, command []string) bool {
	if !strings.HasPrefix(command[0], "-") && !words[0].start {
		return false
	}
	for i, want := range command {
		got := words[i].text
		if i == 0 && words[0].start {
			got = path.Base(got)
		}
		if !glob(want, got) {
			return false
		}
	}
	return true
}

// flagWord returns the value of a flag, written "--flag value" or "--flag=value" and with dashes or underscores. The last
// one counts, as in the argument parsers of the frameworks.
func flagWord(words []word, flag string) (value string, found bool) {
	for i := len(words) - 1; i >= 0; i-- {
		name, value, assigned := strings.Cut(words[i].text, "=")
		if !strings.HasPrefix(name, "-") || strings.ReplaceAll(name, "_", "-") != flag {
			continue
		}
		if !assigned && i+1 < len(words) {
			value = words[i+1].text
		}
		return value, true
	}
	return "", false
}

// anyFlag returns the first of the flags that is there, and "" when none is.
func anyFlag(words []word, flags []string) string {
	i := slices.IndexFunc(flags, func(f string) bool {
		_, found := flagWord(words, f)
		return found
	})
	if i < 0 {
		return ""
	}
	return flags[i]
}

var (
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

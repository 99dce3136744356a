package shim

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

var (
	// ErrNoVariable is that of a container that the shim could cap.
	ErrNoVariable = errors.New("write PYTHONPATH in the container's env, empty if the image sets none, and the shim caps it")

	errIgnored  = errors.New("the command starts Python with -I, -E or -S, with which it loads none")
	errCleared  = errors.New("the command clears the environment")
	errReplaced = errors.New("the command sets or removes " + pythonPath +
		"; let a shell keep what it has, as in " + pythonPath + "=/app:$" + pythonPath)
	errUsed = errors.New("the container itself uses the value of " + pythonPath)
)

// keepsVariable returns the reason why Python would not see the variable's value, or something else would.
func keepsVariable(c *corev1.Container, words []commandline.Word) error {
	switch {
	case ignoresEnvironment(words):
		return errIgnored
	case clearsEnvironment(words):
		return errCleared
	case slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
		return e.Name != pythonPath && strings.Contains(e.Value, "$("+pythonPath+")")
	}):
		return errUsed
	}
	for i, w := range words {
		if w.Text == pythonPath && i > 0 && words[i-1].Text == "export" {
			continue
		}
		if err := keepsIn(w); err != nil {
			return err
		}
	}
	return nil
}

// mention finds the variable's name, with the characters before it that show a use of its value.
var mention = regexp.MustCompile(`(^-u|\$[({]?|\b)` + pythonPath + `\b`)

// assigned is the value behind the name in an assignment.
var assigned = regexp.MustCompile(`^(\+?)=([^\s;&|]*)`)

// keeps finds a value into which a shell puts the variable's present value.
var keeps = regexp.MustCompile(`\$\{?` + pythonPath + `\b`)

// keepsIn returns the reason why a word with the variable's name in it does not keep the variable's present value.
func keepsIn(w commandline.Word) error {
	text := w.Text
	for {
		at := mention.FindStringIndex(text)
		if at == nil {
			return nil
		}
		value := assigned.FindStringSubmatch(text[at[1]:])
		switch {
		case text[at[0]] == '$':
			return errUsed
		case value == nil:
			return errReplaced
		case strings.Contains(value[2], "$("+pythonPath+")"):
			return errUsed
		case !w.Shell || value[1] == "" && !keeps.MatchString(value[2]):
			return errReplaced
		}
		text = text[at[1]+len(value[0]):]
	}
}

// pythonProgram is a name of the interpreter.
var pythonProgram = regexp.MustCompile(`^python[0-9.]*[a-z]?$`)

// ignoresEnvironment reports whether a command among the words, also one that another program starts, starts Python with an
// option by which it reads no PYTHONPATH or runs no start-up code.
func ignoresEnvironment(words []commandline.Word) bool {
	python, argument := false, false
	for _, w := range words {
		switch {
		case w.Start || !python:
			python, argument = pythonProgram.MatchString(path.Base(w.Text)), false
		case argument:
			argument = false
		case !strings.HasPrefix(w.Text, "-"):
			python = false // the program; later words are its own
		default:
			i := strings.IndexAny(w.Text, "IEScmWX")
			switch {
			case i < 0:
			case strings.IndexByte("IES", w.Text[i]) >= 0:
				return true
			default:
				python = w.Text[i] == 'W' || w.Text[i] == 'X'
				argument = i == len(w.Text)-1
			}
		}
	}
	return false
}

// ignoresAsArguments is ignoresEnvironment for arguments of an entrypoint of the image, which may be Python.
func ignoresAsArguments(words []commandline.Word) bool {
	if len(words) == 0 || !strings.HasPrefix(words[0].Text, "-") {
		return false
	}
	first := words[0]
	first.Start = false
	return ignoresEnvironment(slices.Concat([]commandline.Word{{Text: "python", Start: true}, first}, words[1:]))
}

// clearedBy is an option by which env starts its command with no variable.
var clearedBy = regexp.MustCompile(`^(-|-[0v]*i.*|--ignore-environment)$`)

// clearsEnvironment reports whether a command among the words is started by env without the variables that there are.
func clearsEnvironment(words []commandline.Word) bool {
	env, argument := false, false
	for _, w := range words {
		switch {
		case path.Base(w.Text) == "env":
			env, argument = true, false
		case !env || argument:
			argument = false
		case clearedBy.MatchString(w.Text):
			return true
		default:
			argument = w.Text == "-u" || w.Text == "-C"
			env = argument || strings.HasPrefix(w.Text, "-") || strings.Contains(w.Text, "=")
		}
	}
	return false
}

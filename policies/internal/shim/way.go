package shim

import (
	"errors"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// What policy may say.
const (
	On  = "on"
	Off = "off"
)

// Ways in which a container's Python loads the shim. None replaces the PYTHONPATH of an image, which admission cannot see.
const (
	ByVariable = "variable" // the pod's own PYTHONPATH, which has replaced the image's already, begins with the shim's folder
	ByCommand  = "command"  // the pod's own command is started by a program that puts the folder before what there is
)

// pythonPath is the variable with the folders in which Python looks first.
const pythonPath = "PYTHONPATH"

// WayOf is how a container, whose command line has these words, can load the shim, or why it cannot.
func WayOf(c *corev1.Container, words []commandline.Word) (string, error) {
	at := entryOf(c)
	switch {
	case ignoresEnvironment(words):
		return "", errors.New("the command starts Python with -I, -E or -S, with which it loads none")
	case at >= 0 && c.Env[at].ValueFrom == nil && !strings.Contains(c.Env[at].Value, "$("):
		return ByVariable, nil
	case len(c.Command) > 0:
		return ByCommand, nil
	case at >= 0 || len(c.EnvFrom) > 0:
		return "", errors.New("the value of " + pythonPath + " is known at run time only; write the container's command, or the value in env")
	}
	return "", errors.New("the image may set " + pythonPath + "; write the container's command, or that variable in env (empty where the image sets none)")
}

// entryOf is the entry of the variable that counts, or -1: of several the last.
func entryOf(c *corev1.Container) int {
	for i := len(c.Env) - 1; i >= 0; i-- {
		if c.Env[i].Name == pythonPath {
			return i
		}
	}
	return -1
}

// ignoresEnvironment reports whether a command among the words starts Python with an option by which it reads no PYTHONPATH or
// runs no start-up code.
func ignoresEnvironment(words []commandline.Word) bool {
	python, argument := false, false
	for _, w := range words {
		switch {
		case w.Start:
			python, argument = strings.HasPrefix(path.Base(w.Text), "python"), false
		case argument || !python:
			argument = false
		case !strings.HasPrefix(w.Text, "-"):
			python = false // the program, and what follows is its own
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

package shim

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// Policy's choices.
const (
	Off      = "off"
	Variable = "variable" // where it changes a variable of the pod, and nothing else
	On       = "on"
	EnvFiles = "env-files" // on, and the cluster has variables from files
)

// Modes are policy's choices, the laxest first.
func Modes() []string { return []string{Off, Variable, On, EnvFiles} }

// Ways in which a container's Python loads the shim. None replaces the PYTHONPATH of an image, which admission cannot see.
const (
	ByVariable = "variable" // the pod's own PYTHONPATH, which has replaced the image's already, begins with the shim's folder
	ByCommand  = "command"  // the pod's own command is started by a program that puts the folder before the present value
	ByFile     = "file"     // an init container of the image records the present value, and the kubelet reads the variable from that file
)

// pythonPath is the variable with the folders in which Python looks first.
const pythonPath = "PYTHONPATH"

// WayOf is how a container of the pod, whose command line has these words, can load the shim where policy has it in this mode, or
// why it cannot.
func WayOf(pod *corev1.Pod, c *corev1.Container, words []commandline.Word, mode string) (string, error) {
	if err := keepsVariable(c, words); err != nil {
		return "", err
	}
	at := entryOf(c)
	switch {
	case at >= 0 && c.Env[at].ValueFrom == nil && !strings.Contains(c.Env[at].Value, "$("):
		return ByVariable, nil
	case mode == Variable:
		return "", ErrNoVariable
	case len(c.Command) > 0:
		return orNone(ByCommand, startsOthers(pod, c))
	case at < 0 && len(c.EnvFrom) == 0 && mode == EnvFiles && ignoresAsArguments(words):
		return "", errIgnored
	case at < 0 && len(c.EnvFrom) == 0 && mode == EnvFiles:
		return orNone(ByFile, startsOthers(pod, c))
	case at >= 0 || len(c.EnvFrom) > 0:
		return "", errors.New("the value of " + pythonPath + " is known at run time only; write the container's command, or the value in env")
	}
	return "", errors.New("the image may set " + pythonPath +
		"; write the container's command, or that variable in env (empty where the image sets none)")
}

func orNone(way string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return way, nil
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

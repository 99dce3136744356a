package shim

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// Write makes the container load the shim in that way; number is that of its recorder. Written twice is written once.
func Write(c *corev1.Container, way string, number int) {
	switch way {
	case ByCommand:
		c.Command = slices.Concat([]string{limits.ShimProgram}, withoutProgram(c.Command))
		return
	case ByFile:
		at := slices.IndexFunc(c.Env, fromFile)
		if at < 0 {
			c.Env, at = append(c.Env, corev1.EnvVar{}), len(c.Env)
		}
		c.Env[at] = corev1.EnvVar{Name: pythonPath, ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
			VolumeName: limits.ShimVolume, Path: recordFile(number), Key: pythonPath, Optional: new(true), // else the image's stays
		}}}
		return
	}
	at := entryOf(c)
	if at < 0 {
		c.Env, at = append(c.Env, corev1.EnvVar{Name: pythonPath}), len(c.Env)
	}
	value := limits.ShimFolder
	if theirs := withoutFolder(c.Env[at].Value); theirs != "" {
		value += ":" + theirs
	}
	c.Env[at].Value = value
}

// Remove makes the container start as its author wrote it, but for the edits of that way.
func Remove(c *corev1.Container, keep string) {
	if keep != ByCommand {
		c.Command = withoutProgram(c.Command)
	}
	if keep != ByFile {
		c.Env = slices.DeleteFunc(c.Env, fromFile)
	}
	if at := entryOf(c); at >= 0 && keep != ByVariable {
		c.Env[at].Value = withoutFolder(c.Env[at].Value)
	}
}

// Restore writes the shim where all else is as on was, which loads it.
func Restore(c, was *corev1.Container) {
	if slices.Equal(c.Command, withoutProgram(was.Command)) {
		c.Command = slices.Clone(was.Command)
	}
	at, before := entryOf(c), entryOf(was)
	if at < 0 && before >= 0 && fromFile(was.Env[before]) {
		c.Env = append(c.Env, *was.Env[before].DeepCopy())
		return
	}
	if at >= 0 && before >= 0 && c.Env[at].Value == withoutFolder(was.Env[before].Value) {
		c.Env[at].Value = was.Env[before].Value
	}
}

func withoutProgram(command []string) []string {
	if len(command) == 0 || command[0] != limits.ShimProgram {
		return command
	}
	return command[1:]
}

func withoutFolder(value string) string {
	if value == limits.ShimFolder {
		return ""
	}
	return strings.TrimPrefix(value, limits.ShimFolder+":")
}

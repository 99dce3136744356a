// Package frameworks holds the settings that PyTorch, vLLM and the other frameworks read of their environment, version
// by version: a profile for each in profiles/. For applies them to one container: the variables and arguments that keep
// the framework in a slice, and the settings that cannot.
//
// The package knows no policy, pool or pod: a slice is a number of bytes here.
package frameworks

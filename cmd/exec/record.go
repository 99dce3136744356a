package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// longestRecord bounds the output: the volume is small and in memory.
const longestRecord = 4 << 10

// record writes PYTHONPATH, with the shim's folder before the environment's value, to a file of variables. The file is
// written also if it cannot hold the value: without the variable in it, the container keeps its image's.
func record(path string, environment []string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("record PYTHONPATH: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(line(environment))
	for _, next := range []func() error{
		func() error { return file.Chmod(0o444) }, file.Close, func() error { return os.Rename(file.Name(), path) }} {
		if err == nil {
			err = next()
		}
	}
	if err != nil {
		return fmt.Errorf("record PYTHONPATH: %w", err)
	}
	return nil
}

// line is the variable as the kubelet reads it: in single quotes, in which nothing is escaped.
func line(environment []string) string {
	changed := withFolder(environment)
	name, value, _ := strings.Cut(changed[len(changed)-1], "=")
	if len(value) > longestRecord || !utf8.ValidString(value) || strings.ContainsAny(value, "'\r\n") {
		return "# gpuslice: " + name + " of the image cannot be written in this file, and stays as it is\n"
	}
	return name + "='" + value + "'\n"
}

// Package shim limits PyTorch before 2.10, which reads no limit from its environment: sitecustomize.py, which Python runs
// at its start, sets the limit inside the process that initialises CUDA. It brings the file to the pod; package cmd/exec
// starts programs with it.
package shim

import (
	_ "embed" // sitecustomize.py
	"fmt"
	"os"
	"path/filepath"
)

//go:embed sitecustomize.py
var sitecustomize []byte

// Write writes the file that Python runs into folder, and beside it a copy of program, under its own name. It may run
// again: whoever reads a file meanwhile reads a whole one.
func Write(folder, program string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the program that starts others with the shim: %w", err)
	}
	if err := replace(filepath.Join(folder, filepath.Base(program)), binary, 0o555); err != nil {
		return err
	}
	return replace(filepath.Join(folder, "sitecustomize.py"), sitecustomize, 0o444)
}

func replace(path string, content []byte, mode os.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write shim: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	for _, next := range []func() error{
		func() error { return file.Chmod(mode) }, file.Close, func() error { return os.Rename(file.Name(), path) }} {
		if err == nil {
			err = next()
		}
	}
	if err != nil {
		return fmt.Errorf("write shim: %w", err)
	}
	return nil
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain lets this program stand for the one that is tested: it replaces itself.
func TestMain(m *testing.M) {
	if os.Getenv("GPUSLICE_EXEC_TEST") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// started runs the program with an environment of its own, in the folder dir.
func started(t *testing.T, dir string, env []string, command ...string) (out string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, command...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "GPUSLICE_EXEC_TEST=1", "GOCOVERDIR="+os.Getenv("GOCOVERDIR"))
	said, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(said), cmd.ProcessState.ExitCode()
}

func TestStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\necho script $PYTHONPATH\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + os.Getenv("PATH")
	for _, tt := range []struct {
		name    string
		env     []string
		command []string
		out     string
		code    int
	}{
		{"an image without the variable", []string{path}, []string{"sh", "-c", "echo $PYTHONPATH"}, "/gpuslice/shim\n", 0},
		{"an image with it", []string{path, "PYTHONPATH=/workspace:"},
			[]string{"sh", "-c", "echo $PYTHONPATH"}, "/gpuslice/shim:/workspace:\n", 0},
		{"an empty one", []string{path, "PYTHONPATH="}, []string{"sh", "-c", "echo $PYTHONPATH"}, "/gpuslice/shim\n", 0},
		{"another variable", []string{path, "A=b"}, []string{"sh", "-c", "echo $A"}, "b\n", 0},
		{"arguments and exit code", []string{path}, []string{"sh", "-c", "echo $0 $#; exit 7", "zero", "a b", ""}, "zero 2\n", 7},
		{"a path from the working folder", []string{path}, []string{"./script"}, "script /gpuslice/shim\n", 0},
		{"a PATH with the working folder in it", []string{"PATH=.:/bin:/usr/bin"}, []string{"script"}, "script /gpuslice/shim\n", 0},
		{"a program that is not there", []string{path}, []string{"no-such-program"},
			"gpuslice-exec: exec: \"no-such-program\": executable file not found in $PATH\n", 127},
		{"a file that is no program", []string{path}, []string{"./text"}, "gpuslice-exec: start ./text: exec format error\n", 126},
		{"nothing", []string{path}, nil, "gpuslice-exec: no program to start\n", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if out, code := started(t, dir, tt.env, tt.command...); out != tt.out || code != tt.code {
				t.Errorf("exit %d, printed %q; want %d, %q", code, out, tt.code, tt.out)
			}
		})
	}
	t.Run("the process stays the one that was started", func(t *testing.T) {
		t.Parallel()
		// The shell started it, and replaced itself by it: both print the number of one process.
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo $$; exec "$0" sh -c 'echo $$'`, self)
		cmd.Env = []string{path, "GPUSLICE_EXEC_TEST=1", "GOCOVERDIR=" + os.Getenv("GOCOVERDIR")}
		out, err := cmd.Output()
		if ids := strings.Fields(string(out)); err != nil || len(ids) != 2 || ids[0] != ids[1] {
			t.Errorf("printed %q, %v", out, err)
		}
	})
}

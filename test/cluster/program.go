package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Program is a command of this repository that goes into an image.
type Program struct {
	// Package is its import path, or a path from the top of the checkout that begins with "./".
	Package string
	// CGO builds it with a C compiler, for programs that load a library at run time; it then needs the C library in its
	// image (see image.Program).
	CGO bool
	// LDFlags are passed on to the linker.
	LDFlags string
}

// Compile builds a program of this checkout as the file out. Go's own cache makes that quick where nothing
// has changed. It needs the network where a dependency has not been downloaded, so it is for the time
// before a box is entered.
func Compile(ctx context.Context, p Program, out string) error {
	modules, err := modulesFolder()
	if err != nil {
		return err
	}
	cache, err := cacheRoot()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w "+p.LDFlags, "-o", out, p.Package)
	cmd.Dir = filepath.Join(modules, "..", "..", "..")
	cmd.Env = append(goEnvironment(cache), "GOGC=400") // Makefile says why
	if p.CGO {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.Package, err, said)
	}
	return nil
}

// BuildSettings returns a folder for build outputs, which outlives this process, and the environment in which Go's
// commands build the same everywhere.
func BuildSettings() (cache string, environment []string, err error) {
	cache, err = cacheRoot()
	if err != nil {
		return "", nil, err
	}
	return cache, goEnvironment(cache), nil
}

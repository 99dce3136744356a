package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
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
	checkout, err := Checkout()
	if err != nil {
		return err
	}
	cache, err := cacheRoot()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w "+p.LDFlags, "-o", out, p.Package)
	cmd.Dir = checkout
	cmd.Env = append(goEnvironment(cache), "GOGC=400") // Makefile says why
	if p.CGO {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.Package, err, said)
	}
	return nil
}

// MakeBuild returns the folder of the programs that "make build" leaves of this checkout, with a version. The folder outlives this
// process, because Go links again only what has changed.
func MakeBuild(ctx context.Context, version string) (string, error) {
	checkout, err := Checkout()
	if err != nil {
		return "", err
	}
	cache, err := cacheRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, fmt.Sprintf("programs-%.8x", sha256.Sum256([]byte(checkout+"\x00"+version))))
	unlock, err := lockFile(ctx, dir+".lock", func() { fmt.Fprintln(os.Stderr, "waiting for another make build") })
	if err != nil {
		return "", err
	}
	defer unlock()
	cmd := exec.CommandContext(ctx, "make", "build", "BIN="+dir, "VERSION="+version)
	cmd.Dir, cmd.Env = checkout, goEnvironment(cache)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build: %w\n%s", err, said)
	}
	return dir, nil
}

// Checkout returns the folder of the sources, from the working folder upwards.
func Checkout() (string, error) {
	modules, err := modulesFolder()
	return filepath.Join(modules, "..", "..", ".."), err
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

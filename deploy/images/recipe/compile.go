package recipe

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// ErrNoCompiler is the error where an image cannot be built because there is no C compiler.
var ErrNoCompiler = errors.New("no C compiler")

// compile builds the recipe's program and returns it. Neither the folder of the checkout nor the commit gets into it, so
// that the same sources give the same bytes.
func (r Recipe) compile(ctx context.Context, o *Options, p v1.Platform) ([]byte, error) {
	env, err := r.environment(o, p)
	if err != nil {
		return nil, err
	}
	// A file for each checkout and version: Go links again only where the file there is of other sources.
	dir := filepath.Join(o.Cache, "programs", fmt.Sprintf("%.8x", sha256.Sum256([]byte(o.Checkout+"\x00"+o.Version))), p.OS+"-"+p.Architecture)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of programs: %w", err)
	}
	out := filepath.Join(dir, r.Name)
	unlock, err := lock(ctx, out+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	o.Say("compiling %s for %s/%s", r.Name, p.OS, p.Architecture)
	// With gRPC's tracing the linker keeps every method of every Kubernetes type: 20 MB.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version="+o.Version, "-o", out, r.Package)
	cmd.Dir, cmd.Env = o.Checkout, env
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile %s: %w\n%s", r.Package, err, said)
	}
	program, err := os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("read program: %w", err)
	}
	return program, nil
}

// environment sets all variables that could change the compiler's output.
func (r Recipe) environment(o *Options, p v1.Platform) ([]string, error) {
	env := append(o.environment(), "GOOS="+p.OS, "GOARCH="+p.Architecture, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off",
		"GOFLAGS=-mod=readonly", "GOWORK=off")
	if !r.LoadsDriver {
		return append(env, "CGO_ENABLED=0"), nil
	}
	cc, err := o.Compiler(p.Architecture)
	// go-nvml's header marks half of NVML as deprecated.
	return append(env, "CGO_ENABLED=1", "CC="+cc, "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations", "CGO_CPPFLAGS=", "CGO_LDFLAGS="), err
}

// CheckCompilers returns an ErrNoCompiler for each platform for which the recipes need a C compiler that is not there.
func (o *Options) CheckCompilers(recipes ...Recipe) (err error) {
	if !slices.ContainsFunc(recipes, func(r Recipe) bool { return r.LoadsDriver }) {
		return nil
	}
	for _, p := range o.Platforms {
		_, missing := o.Compiler(p.Architecture)
		err = errors.Join(err, missing)
	}
	return err
}

// Compiler returns the C compiler for an architecture: the one that was named, else this machine's own, else the
// cross compiler under the name that distributions give it.
func (o *Options) Compiler(arch string) (string, error) {
	if cc := o.Compilers[arch]; cc != "" {
		return cc, nil
	}
	cc := map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}[arch]
	if arch == runtime.GOARCH {
		cc = "gcc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		cpu := map[string]string{"amd64": "x86-64", "arm64": "aarch64"}[arch]
		return "", fmt.Errorf(
			"%w for %s: install %s (Debian: apt-get install gcc-%s-linux-gnu libc6-dev-%s-cross), or name another with --cc %s=COMMAND",
			ErrNoCompiler, arch, cc, cpu, arch, arch)
	}
	return cc, nil
}

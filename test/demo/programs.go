package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/fakegpu"
	"github.com/gpuslice/gpuslice/test/install"
)

// programs are the paths of what the demonstration runs without Kubernetes.
type programs struct{ webhook, guard, tenant, library string }

// buildPrograms compiles webhook, guard, tenant and the simulated driver. Without gcc there is no guard, and no driver to load.
func buildPrograms(ctx context.Context, dir string, stderr io.Writer) (p programs, err error) {
	fmt.Fprintln(stderr, "--> building webhook, guard and a simulated driver (the first time: a minute or two)")
	if p.webhook, err = install.Binary(ctx, dir, "cmd/webhook"); err != nil {
		return p, err
	}
	if p.library, err = fakegpu.Build(ctx, ""); errors.Is(err, fakegpu.ErrNoCompiler) {
		return p, nil
	} else if err != nil {
		return p, err
	}
	p.guard, p.tenant = filepath.Join(dir, "guard"), filepath.Join(dir, "tenant")
	return p, errors.Join(
		cluster.Compile(ctx, cluster.Program{Package: "./cmd/guard", CGO: true}, p.guard),
		cluster.Compile(ctx, cluster.Program{Package: "./test/fakegpu/tenant"}, p.tenant))
}

// helmFile is where the node's box has helm: it is built outside, where there is a network.
const helmFile = "helm"

// writePrograms writes the programs that a user has into a folder below dir, each reaching the cluster from any shell, and
// returns the folder. helm "": none.
func writePrograms(server *cluster.APIServer, dir, command, helm string) (string, error) {
	folder := filepath.Join(dir, "bin")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", fmt.Errorf("make folder of programs: %w", err)
	}
	for name, path := range map[string]string{"kubectl": server.Program("kubectl"), "gpuslice": command, "helm": helm} {
		if path == "" {
			continue
		}
		if _, err := server.WriteProgram(folder, name, path); err != nil {
			return "", err
		}
	}
	return folder, nil
}

package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// programs are the paths of what the two pods run.
type programs struct{ guard, tenant, library string }

// buildPrograms compiles guard, tenant and the simulated driver into dir, as this program was compiled: what they have in common is
// not compiled again.
func buildPrograms(ctx context.Context, dir string, stderr io.Writer) (p programs, err error) {
	fmt.Fprintln(stderr, "--> building the guard and a simulated driver")
	if p.library, err = fakegpu.Build(ctx, ""); err != nil {
		return p, err
	}
	const module = "github.com/gpuslice/gpuslice/"
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", dir+"/",
		module+"cmd/guard", module+"test/fakegpu/tenant")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOGC=400") // Makefile says why
	if said, err := cmd.CombinedOutput(); err != nil {
		return p, fmt.Errorf("build guard and tenant: %w\n%s", err, said)
	}
	p.guard, p.tenant = filepath.Join(dir, "guard"), filepath.Join(dir, "tenant")
	return p, nil
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// TestSize holds the program against the volume that it is copied to: twice, when the check runs again, and with room for
// the start-up file.
func TestSize(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "gpuslice-exec")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	const startUpFile = 64 << 10
	volume := resource.MustParse(limits.ShimSize)
	if need := 2 * (info.Size() + startUpFile); need > volume.Value() {
		t.Errorf("the volume needs %d bytes, and has %s", need, limits.ShimSize)
	}
}

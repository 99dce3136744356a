package cluster

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// Wanted reports whether tests of the given tier ("apiserver" or "node") were selected by GPUSLICE_TEST, a list with
// commas.
func Wanted(tier string) bool { return run.Wanted(tier) }

// Need skips the test, saying how to run it, unless GPUSLICE_TEST names the tier apiserver. A test that builds something
// for an API server calls it before it builds.
func Need(t testing.TB) {
	t.Helper()
	if !Wanted("apiserver") {
		t.Skip("starts a real API server: set GPUSLICE_TEST=apiserver to run it")
	}
}

// startWithin bounds the start of a control plane, which takes three seconds on an idle machine.
const startWithin = 2 * time.Minute

// ForTest starts an API server that ends with the test, and skips the test, saying how to run it, unless
// GPUSLICE_TEST names the tier apiserver. Where o.Bin is nil the programs are built.
func ForTest(t testing.TB, o Options) *APIServer {
	t.Helper()
	Need(t)
	if o.Bin == nil {
		bin, err := Build(t.Context(), os.Stderr, ControlPlane()...)
		if err != nil {
			t.Fatal(err)
		}
		o.Bin = bin
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	s, err := StartAPIServer(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

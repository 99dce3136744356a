package cluster

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Wanted reports whether tests that need the given tier ("apiserver") were asked for: they take
// seconds and, the first time, minutes of compiling, so that plain `go test ./...` leaves them out.
func Wanted(tier string) bool {
	return slices.Contains(strings.Split(os.Getenv("GPUSLICE_TEST"), ","), tier)
}

// startWithin bounds the start of a control plane, which takes three seconds on an idle machine.
const startWithin = 2 * time.Minute

// ForTest starts an API server that ends with the test, and skips the test, saying how to run it, unless
// GPUSLICE_TEST names the tier apiserver. Where o.Bin is nil the programs are built.
func ForTest(t testing.TB, o Options) *APIServer {
	t.Helper()
	if !Wanted("apiserver") {
		t.Skip("starts a real API server: set GPUSLICE_TEST=apiserver to run it")
	}
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

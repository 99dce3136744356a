package apiserver

import (
	"testing"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// bare is an API server that has some of our manifests, and no webhook: what holds there holds while we are down.
type bare struct {
	*cluster.APIServer
	apply *install.Applier
}

// without starts a bare server with the files of package deploy.
func without(t *testing.T, o cluster.Options, files ...string) *bare {
	t.Helper()
	s := &bare{APIServer: cluster.ForTest(t, o)}
	var err error
	if s.apply, err = install.NewApplier(s.Config); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		s.manifest(t, name)
	}
	return s
}

// manifest applies a file of package deploy.
func (s *bare) manifest(t *testing.T, name string) {
	t.Helper()
	if err := s.apply.Manifest(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

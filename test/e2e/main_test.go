package e2e

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/install"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, build)) }

// build is install.Build, with the newest release of NVIDIA's device plugin where all versions are wanted.
func build(ctx context.Context, dir string) error {
	if err := install.Build(ctx, dir); err != nil || !cluster.Wanted("matrix") {
		return err
	}
	return cluster.AddPrograms(ctx, os.Stderr, dir, cluster.NewestNVIDIAPlugin())
}

// devices of the node, each in four replicas.
const devices = 4

// start starts the one node of this package's box.
var start = sync.OnceValues(func() (*install.OnNode, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	shell, err := shellImage()
	if err != nil {
		return nil, err
	}
	s6, err := s6Image()
	if err != nil {
		return nil, err
	}
	pythons, err := pythonImages()
	if err != nil {
		return nil, err
	}
	n, err := install.StartNode(ctx, box.Dir(), devices, append(pythons, shell, s6)...)
	if err != nil {
		return nil, err
	}
	if err := startMPS(ctx, n); err != nil {
		return nil, err
	}
	return n, govern(ctx, n)
})

// govern writes the policies.
func govern(ctx context.Context, n *install.OnNode) error {
	files, err := filepath.Glob("testdata/policies/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := filepath.Base(file)
		if err := n.Policy(ctx, name[:len(name)-len(".yaml")], text); err != nil {
			return err
		}
	}
	return n.Settle(ctx, install.SharedResource, mpsResource)
}

// onNode returns the node, or skips the test where no node was asked for.
func onNode(t *testing.T) *install.OnNode {
	t.Helper()
	if !cluster.Wanted("node") {
		t.Skip("starts a real node: set GPUSLICE_TEST=node to run it, as root")
	}
	n, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

package mps

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPipeDirectories(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	daemon := func(at string) string {
		directory := filepath.Join(root, at)
		if err := os.MkdirAll(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(directory, controlPipe), 0o600); err != nil {
			t.Fatal(err)
		}
		return directory
	}
	plugin, own, below := daemon("plugin/nvidia.com/pipe"), daemon("own"), daemon("own/second")
	put(t, root, controlPipe, "a file")
	got := PipeDirectories([]string{filepath.Join(root, "plugin"), filepath.Join(root, "own"), filepath.Join(root, "own"), root, "/nowhere"})
	if diff := cmp.Diff([]string{own, below, plugin}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

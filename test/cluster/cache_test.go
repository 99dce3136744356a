package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCacheRoot(t *testing.T) {
	tmp := t.TempDir()
	tests := []struct {
		name string
		env  map[string]string
		want func(root string) bool
	}{
		{
			name: "GPUSLICE_CACHE wins",
			env:  map[string]string{"GPUSLICE_CACHE": tmp + "/mine", "XDG_CACHE_HOME": tmp + "/xdg"},
			want: func(root string) bool { return root == tmp+"/mine" },
		},
		{
			name: "else it lies in the user's cache folder",
			env:  map[string]string{"XDG_CACHE_HOME": tmp + "/xdg"},
			want: func(root string) bool { return root == tmp+"/xdg/gpuslice" },
		},
		{
			name: "without HOME it lies in the temporary folder",
			env:  map[string]string{"TMPDIR": tmp},
			want: func(root string) bool { return strings.HasPrefix(root, tmp+"/gpuslice-cache-") },
		},
		{
			name: "with a HOME that cannot be written it lies in the temporary folder",
			env:  map[string]string{"HOME": "/dev/null", "TMPDIR": tmp},
			want: func(root string) bool { return strings.HasPrefix(root, tmp+"/gpuslice-cache-") },
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			for _, name := range []string{"GPUSLICE_CACHE", "XDG_CACHE_HOME", "HOME", "TMPDIR"} {
				t.Setenv(name, tc.env[name])
			}
			root, err := cacheRoot()
			if err != nil {
				t.Fatal(err)
			}
			if !tc.want(root) {
				t.Errorf("cacheRoot() = %s", root)
			}
			if err := os.WriteFile(filepath.Join(root, "x"), nil, 0o600); err != nil {
				t.Errorf("the cache cannot be written: %v", err)
			}
		})
	}
}

func TestCacheOfAnotherUser(t *testing.T) {
	t.Run("is denied", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can make a folder that belongs to somebody else")
		}
		dir := t.TempDir()
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GPUSLICE_CACHE", dir)
		if _, err := cacheRoot(); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Errorf("cacheRoot() in a folder of user 65534: got error %v", err)
		}
	})
}

func TestGoEnvironment(t *testing.T) {
	t.Run("go finds its caches without HOME", func(t *testing.T) {
		t.Setenv("HOME", "")
		t.Setenv("GOCACHE", "")
		t.Setenv("GOPATH", "/somewhere")
		env := goEnvironment("/cache")
		if !slices.Contains(env, "GOCACHE=/cache/go-build") {
			t.Error("GOCACHE is not set although there is no HOME")
		}
		if slices.Contains(env, "GOPATH=/cache/go") {
			t.Error("the GOPATH that was set is overridden")
		}
	})
}

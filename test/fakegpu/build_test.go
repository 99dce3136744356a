package fakegpu

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// functionsOf are the names that a library shows.
func functionsOf(t *testing.T, library string) []string {
	t.Helper()
	f, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names = append(names, s.Name)
		}
	}
	return names
}

// build builds the library, or skips where there is no compiler.
func build(t *testing.T, dir string, without ...string) string {
	t.Helper()
	library, err := Build(t.Context(), dir, without...)
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return library
}

func TestHeader(t *testing.T) {
	t.Parallel()
	t.Run("the library shows the whole of it and nothing else", func(t *testing.T) {
		t.Parallel()
		header, err := readHeader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := functionsOf(t, build(t, t.TempDir()))
		want := []string{"nvmlErrorString"} // declared in another order
		for _, m := range function.FindAllStringSubmatch(header, -1) {
			want = append(want, m[1])
		}
		if len(want) < 300 {
			t.Fatalf("the header has %d functions, which is too few to be read right", len(want))
		}
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("%s is missing", name)
			}
		}
		for _, name := range got {
			if !slices.Contains(want, name) {
				t.Errorf("%s is shown, which is not in the header", name)
			}
		}
	})
}

func TestBuild(t *testing.T) {
	t.Parallel()
	t.Run("the same sources are built once", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		first := build(t, dir)
		before, err := os.Stat(first)
		if err != nil {
			t.Fatal(err)
		}
		second := build(t, dir)
		after, err := os.Stat(second)
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(before, after) {
			t.Errorf("%s was built again as %s", first, second)
		}
		if variant := build(t, dir, "nvmlDeviceGetMigMode"); variant == first {
			t.Error("a library with fewer functions is taken for the whole one")
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".fakegpu-*")); len(left) > 0 {
			t.Errorf("building left %q behind", left)
		}
	})
}

func TestHeaderWithoutModules(t *testing.T) {
	t.Run("what nobody has downloaded yet is downloaded", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
		if err != nil {
			t.Fatal(err)
		}
		downloads := filepath.Join(strings.TrimSpace(string(out)), "cache", "download") // laid out as a proxy is
		t.Setenv("GOPROXY", "file://"+downloads)
		t.Setenv("GOFLAGS", "-modcacherw") // or the folder could not be removed
		t.Setenv("GOMODCACHE", t.TempDir())
		header, err := readHeader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !function.MatchString(header) {
			t.Errorf("no function in what was read: %d bytes", len(header))
		}
	})
}

func TestBuildWithoutCompiler(t *testing.T) {
	t.Run("the error says so", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := Build(t.Context(), t.TempDir()); !errors.Is(err, ErrNoCompiler) {
			t.Errorf("Build without gcc: %v", err)
		}
	})
}

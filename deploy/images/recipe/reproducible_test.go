package recipe

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReproducible(t *testing.T) {
	// Built twice: here, with what Go has in its cache, and in a copy of the sources, with flags in the environment and no commit
	// to name. The guard's image is compiled again there, with cgo and without. The others, which take minutes to compile, come from
	// the cache: all have the same flags.
	t.Run("another checkout gives the same images", func(t *testing.T) {
		here := options(t)
		there := here
		there.Checkout, there.Cache = copySources(t, here.Checkout), t.TempDir()
		there.Environment = append(slices.Clone(here.Environment), "GOTMPDIR="+t.TempDir(), "GOAMD64=v3",
			"CGO_CFLAGS=-O0", "GOFLAGS=-buildvcs=true -ldflags=-X=main.version=other", "TZ=Asia/Tokyo", "LC_ALL=C")
		first, err := Build(t.Context(), here, Recipes()...)
		if err != nil {
			t.Fatal(err)
		}
		var second []Image
		for _, r := range Recipes() {
			there := there
			there.Out = t.TempDir()
			if r.Name == "guard" {
				there.Environment = append(slices.Clone(there.Environment), "GOCACHE="+t.TempDir())
			}
			images, err := Build(t.Context(), there, r)
			if err != nil {
				t.Fatal(err)
			}
			second = append(second, images...)
		}
		for i := range first {
			if first[i].Digest != second[i].Digest {
				t.Errorf("%s is %s here and %s in %s", first[i].Name, first[i].Digest, second[i].Digest, there.Checkout)
			}
			for _, same := range [][2]string{{first[i].Archive, second[i].Archive}, {first[i].Documents[0], second[i].Documents[0]}} {
				if read(t, same[0]) != read(t, same[1]) {
					t.Errorf("%s and %s differ", same[0], same[1])
				}
			}
		}
	})
}

// copySources copies what programs are built from.
func copySources(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "elsewhere")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "test" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.WriteFile(filepath.Join(to, rel), []byte(read(t, path)), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

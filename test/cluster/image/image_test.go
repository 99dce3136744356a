package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unpack returns the regular files of an archive.
func unpack(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = text
		}
	}
}

func TestImageHoldsItsFilesUnderTheirDigests(t *testing.T) {
	t.Parallel()
	src := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(src, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	i := Image{Name: "example.test/app:v1", Files: map[string]string{"/bin/app": src}, Entrypoint: []string{"/bin/app"}, Env: []string{"A=b"}, User: "65532"}
	var first, second bytes.Buffer
	if err := errors.Join(i.Write(&first), i.Write(&second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same image packed twice differs")
	}
	files := unpack(t, &first)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 || len(manifest[0].Layers) != 1 {
		t.Fatalf("manifest %s: %v", files["manifest.json"], err)
	}
	m := manifest[0]
	if diff := cmp.Diff([]string{"example.test/app:v1"}, m.RepoTags); diff != "" {
		t.Errorf("tags (-want +got)\n%s", diff)
	}
	config, layer := files[m.Config], files[m.Layers[0]]
	if want := digest(config) + ".json"; m.Config != want {
		t.Errorf("configuration is called %s, want %s", m.Config, want)
	}
	for _, want := range []string{digest(layer), `"/bin/app"`, `"A=b"`, `"User":"65532"`} {
		if !strings.Contains(string(config), want) {
			t.Errorf("configuration lacks %s: %s", want, config)
		}
	}
	if diff := cmp.Diff(map[string][]byte{"bin/app": []byte("program")}, unpack(t, bytes.NewReader(layer))); diff != "" {
		t.Errorf("files of the layer (-want +got)\n%s", diff)
	}
}

func TestProgramBringsItsLoaderAndLibraries(t *testing.T) {
	t.Parallel()
	files, err := Program("/app", "/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	if files["/app"] != "/bin/sh" {
		t.Errorf("the program itself is missing: %v", files)
	}
	var loader, libc bool
	for path := range files {
		loader = loader || strings.Contains(path, "/ld-")
		libc = libc || strings.Contains(path, "libc.")
	}
	if !loader || !libc {
		t.Errorf("loader found: %v, libc found: %v, in %v", loader, libc, files)
	}
}

func TestMissingFilesAreErrors(t *testing.T) {
	t.Parallel()
	i := Image{Name: "x:v1", Files: map[string]string{"/a": "/nonexistent"}}
	if err := i.Write(io.Discard); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("Write() of a missing file: %v", err)
	}
	if _, err := findLibrary("libnonexistent.so.9"); err == nil {
		t.Error("a library that is nowhere is found")
	}
}

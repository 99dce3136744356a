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
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
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
			files[h.Name] = string(text)
		}
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	t.Run("holds its files", func(t *testing.T) {
		t.Parallel()
		src := filepath.Join(t.TempDir(), "app")
		if err := os.WriteFile(src, []byte("program"), 0o755); err != nil {
			t.Fatal(err)
		}
		i := Image{Name: "team/app:v1", Files: map[string]string{"/bin/app": src}, Entrypoint: []string{"/bin/app"}, User: "7:7"}
		var first, second bytes.Buffer
		if err := errors.Join(i.Write(&first), i.Write(&second)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("the same image packed twice differs")
		}
		layout := unpack(t, first.Bytes())
		blob := func(d descriptor) []byte { return []byte(layout["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]) }
		var index struct{ Manifests []descriptor }
		if err := json.Unmarshal([]byte(layout["index.json"]), &index); err != nil || len(index.Manifests) != 1 {
			t.Fatalf("%s (%v)", layout["index.json"], err)
		}
		if got := index.Manifests[0].Annotations["io.containerd.image.name"]; got != "docker.io/team/app:v1" {
			t.Errorf("it is named %q", got)
		}
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		if err := json.Unmarshal(blob(index.Manifests[0]), &manifest); err != nil || len(manifest.Layers) != 1 {
			t.Fatalf("%+v (%v)", manifest, err)
		}
		if config := string(blob(manifest.Config)); !strings.Contains(config, `"Entrypoint":["/bin/app"]`) ||
			!strings.Contains(config, `"User":"7:7"`) {
			t.Error(config)
		}
		if diff := cmp.Diff(map[string]string{"bin/app": "program"}, unpack(t, blob(manifest.Layers[0]))); diff != "" {
			t.Errorf("files (-want +got)\n%s", diff)
		}
	})
}

func TestProgram(t *testing.T) {
	t.Parallel()
	t.Run("brings its loader and libraries", func(t *testing.T) {
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
	})
}

func TestMissingFiles(t *testing.T) {
	t.Parallel()
	t.Run("are errors", func(t *testing.T) {
		t.Parallel()
		i := Image{Name: "x:v1", Files: map[string]string{"/a": "/nonexistent"}}
		if err := i.Write(io.Discard); err == nil || !strings.Contains(err.Error(), "/nonexistent") {
			t.Errorf("Write() of a missing file: %v", err)
		}
		if _, _, err := findLibrary("libnonexistent.so.9", []string{"/"}); err == nil {
			t.Error("a library that is nowhere is found")
		}
	})
}

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
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

func TestImage(t *testing.T) {
	t.Parallel()
	t.Run("holds its files", func(t *testing.T) {
		t.Parallel()
		src := filepath.Join(t.TempDir(), "app")
		if err := os.WriteFile(src, []byte("program"), 0o755); err != nil {
			t.Fatal(err)
		}
		i := Image{Name: "example.test/app:v1", Files: map[string]string{"/bin/app": src}, Entrypoint: []string{"/bin/app"}}
		var first, second bytes.Buffer
		if err := errors.Join(i.Write(&first), i.Write(&second)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("the same image packed twice differs")
		}
		read, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(first.Bytes())), nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		config, err := read.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"/bin/app"}, config.Config.Entrypoint); diff != "" {
			t.Errorf("entrypoint (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(map[string][]byte{"bin/app": []byte("program")}, unpack(t, mutate.Extract(read))); diff != "" {
			t.Errorf("files (-want +got)\n%s", diff)
		}
	})
}

func TestArchive(t *testing.T) {
	t.Parallel()
	t.Run("is the whole image", func(t *testing.T) {
		t.Parallel()
		archive := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(archive, []byte("an archive"), 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := (Image{Name: "x:v1", Archive: archive}).Write(&out); err != nil || out.String() != "an archive" {
			t.Errorf("Write() = %q, %v", out.String(), err)
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

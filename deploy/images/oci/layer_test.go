package oci

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLayer(t *testing.T) {
	t.Parallel()
	t.Run("has nothing of the machine", func(t *testing.T) {
		t.Parallel()
		packed, err := pack(map[string]File{
			"/b/program": Program([]byte("run me")),
			"/a/link":    {Mode: fs.ModeSymlink | 0o777, Content: []byte("/b/program")},
			"/tmp":       Folder(fs.ModeSticky | 0o777),
			"/a/text":    Text("read me"),
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for in := tar.NewReader(bytes.NewReader(packed)); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %#o %d:%d%s%s %d %s", h.Name, h.Mode, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.Unix(), h.Linkname))
		}
		want := []string{"a/ 0755 0:0 0 ", "a/link 0777 0:0 0 /b/program", "a/text 0644 0:0 0 ",
			"b/ 0755 0:0 0 ", "b/program 0755 0:0 0 ", "tmp/ 01777 0:0 0 "}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("is the same from a cache and without", func(t *testing.T) {
		t.Parallel()
		files := map[string]File{"/a": Text("one"), "/b": Text("two")}
		kept := t.TempDir()
		var digests []string
		for _, cache := range []string{kept, kept, t.TempDir()} {
			layer, err := Layer(files, cache)
			if err != nil {
				t.Fatal(err)
			}
			digest, err := layer.Digest()
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, digest.String())
		}
		if digests[0] != digests[1] || digests[0] != digests[2] {
			t.Errorf("one layer has the digests %q", digests)
		}
	})
	t.Run("paths that leave the image are errors", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"relative", "/a/../../etc", "/a//b", "/a/"} {
			if _, err := pack(map[string]File{path: Text("x")}); err == nil {
				t.Errorf("%q is packed", path)
			}
		}
	})
}

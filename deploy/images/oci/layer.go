package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is the file at one path of a layer.
type File struct {
	// Mode holds the permissions, and fs.ModeDir or fs.ModeSymlink.
	Mode fs.FileMode
	// Content is that of a file, or the target of a symbolic link.
	Content []byte
}

// Program is a file that everybody may read and run.
func Program(content []byte) File { return File{0o755, content} }

// Text is a file that everybody may read.
func Text(content string) File { return File{0o644, []byte(content)} }

// Folder is an empty folder.
func Folder(mode fs.FileMode) File { return File{Mode: fs.ModeDir | mode} }

// Layer packs files, keyed by absolute path, owned by root, with no time. Folders above them come with the layer. The
// compressed layer is kept in the folder cache under the digest of its content, so that packing the same files again
// costs no compression.
func Layer(files map[string]File, cache string) (v1.Layer, error) {
	packed, err := pack(files)
	if err != nil {
		return nil, err
	}
	kept := filepath.Join(cache, fmt.Sprintf("%x.tar.gz", sha256.Sum256(packed)))
	if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
		if err := compress(kept, packed); err != nil {
			return nil, fmt.Errorf("compress layer: %w", err)
		}
	}
	layer, err := tarball.LayerFromFile(kept, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("read layer: %w", err)
	}
	return layer, nil
}

// pack returns the uncompressed archive of files.
func pack(files map[string]File) ([]byte, error) {
	all := maps.Clone(files)
	for name := range files {
		if !path.IsAbs(name) || path.Clean(name) != name {
			return nil, fmt.Errorf("pack %q: not a clean absolute path", name)
		}
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = Folder(0o755)
			}
		}
	}
	var packed bytes.Buffer
	out := tar.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := add(out, name, all[name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := out.Close(); err != nil {
		return nil, fmt.Errorf("end layer: %w", err)
	}
	return packed.Bytes(), nil
}

func add(out *tar.Writer, name string, f File) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"),
		Mode: int64(f.Mode.Perm()), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if f.Mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch f.Mode.Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return out.WriteHeader(h)
	case fs.ModeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(f.Content)
		return out.WriteHeader(h)
	}
	h.Size = int64(len(f.Content))
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err := out.Write(f.Content)
	return err
}

// compress writes b to path, in one step: others may do the same at the same time.
func compress(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), "layer-*.part")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	z := gzip.NewWriter(part)
	_, err = io.Copy(z, bytes.NewReader(b))
	if err := errors.Join(err, z.Close(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

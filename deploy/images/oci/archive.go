package oci

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// WriteArchive writes the layout in dir as one archive, which `ctr images import` and `docker load` take. The digests
// stay those of the layout. A Docker daemon without containerd's image store sees the first platform only.
func WriteArchive(dir string, w io.Writer) error {
	legacy, err := dockerManifest(dir)
	if err != nil {
		return fmt.Errorf("read layout %s: %w", dir, err)
	}
	out := tar.NewWriter(w)
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(os.DirFS(dir), path)
		if err != nil {
			return err
		}
		return member(out, path, content)
	})
	if err := errors.Join(err, member(out, "manifest.json", legacy), out.Close()); err != nil {
		return fmt.Errorf("write archive of %s: %w", dir, err)
	}
	return nil
}

func member(out *tar.Writer, path string, content []byte) error {
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path,
		Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err := out.Write(content)
	return err
}

// dockerManifest returns the document that Docker's old image store reads in the place of the index.
func dockerManifest(dir string) ([]byte, error) {
	named, index, err := open(dir)
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(list.Manifests) == 0 {
		return nil, errors.New("it holds no image")
	}
	image, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	var layers []string
	for _, l := range manifest.Layers {
		layers = append(layers, blob(l.Digest))
	}
	return json.Marshal([]map[string]any{{
		"Config": blob(manifest.Config.Digest), "Layers": layers,
		"RepoTags": []string{named.Annotations["io.containerd.image.name"]},
	}})
}

// contents opens a layout and lists its objects.
func contents(dir string) (v1.ImageIndex, []v1.Descriptor, error) {
	root, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, nil, err
	}
	list, err := root.IndexManifest()
	if err != nil {
		return nil, nil, err
	}
	return root, list.Manifests, nil
}

// open returns the index that a layout of ours names, and how it is described.
func open(dir string) (v1.Descriptor, v1.ImageIndex, error) {
	root, all, err := contents(dir)
	if err != nil {
		return v1.Descriptor{}, nil, err
	}
	for _, d := range all {
		if d.MediaType.IsIndex() {
			index, err := root.ImageIndex(d.Digest)
			return d, index, err
		}
	}
	return v1.Descriptor{}, nil, errNoIndex
}

package oci

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Built is an image for one platform, and its attachments.
type Built struct {
	Platform  v1.Platform
	Image     v1.Image
	Documents []Document
}

// Bundle is one image for all its platforms.
type Bundle struct {
	// Name is a reference with a tag.
	Name   string
	Labels map[string]string
	Images []Built
}

// index is the list of the bundle's images.
func (b Bundle) index() v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range b.Images {
		platform := i.Platform
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i.Image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return mutate.Annotations(index, b.Labels).(v1.ImageIndex)
}

// WriteLayout writes the bundle as an OCI layout into the folder dir, in the place of its present content, and returns
// the digest of its index.
func (b Bundle) WriteLayout(dir string) (v1.Hash, error) {
	index := b.index()
	annotations, err := names(b.Name)
	if err != nil {
		return v1.Hash{}, err
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return v1.Hash{}, fmt.Errorf("clear layout: %w", err)
	}
	path, err := layout.Write(part, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("begin layout: %w", err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return v1.Hash{}, fmt.Errorf("write images of %s: %w", b.Name, err)
	}
	if err := b.writeDocuments(path); err != nil {
		return v1.Hash{}, err
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(part, dir)); err != nil {
		return v1.Hash{}, fmt.Errorf("place layout: %w", err)
	}
	return index.Digest()
}

func (b Bundle) writeDocuments(path layout.Path) error {
	for _, i := range b.Images {
		for _, d := range i.Documents {
			artifact, err := d.attach(i.Image)
			if err != nil {
				return err
			}
			if err := path.AppendImage(artifact); err != nil {
				return fmt.Errorf("write %s: %w", d.Title, err)
			}
		}
	}
	return nil
}

// tagAnnotation has the tag of a named object in a layout.
const tagAnnotation = "org.opencontainers.image.ref.name"

// names are the annotations by which tools find the name of an image in a layout: containerd wants it whole, others the
// tag.
func names(reference string) (map[string]string, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return nil, fmt.Errorf("read name %q: %w", reference, err)
	}
	return map[string]string{
		"io.containerd.image.name": whole(tag),
		tagAnnotation:              tag.TagStr(),
	}, nil
}

// whole is the reference as kubelets write it.
func whole(tag name.Tag) string {
	return strings.Replace(tag.Name(), "index.docker.io/", "docker.io/", 1)
}

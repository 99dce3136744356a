package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Artifact is something else than an image that registries keep, such as a chart: a configuration and one layer.
type Artifact struct {
	// Name is a reference with a tag.
	Name                    string
	ConfigType, ContentType string
	Config, Content         []byte
	Annotations             map[string]string
	// ContentAnnotations are those of the one layer.
	ContentAnnotations map[string]string
}

// WriteLayout writes the artifact as an OCI layout into the folder dir, in the place of its present content, and
// returns the digest of its manifest.
func (a Artifact) WriteLayout(dir string) (v1.Hash, error) {
	annotations, err := names(a.Name)
	if err != nil {
		return v1.Hash{}, err
	}
	image, err := a.image()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("pack %s: %w", a.Name, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return v1.Hash{}, fmt.Errorf("clear layout: %w", err)
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("begin layout: %w", err)
	}
	if err := path.AppendImage(image, layout.WithAnnotations(annotations)); err != nil {
		return v1.Hash{}, fmt.Errorf("write %s: %w", a.Name, err)
	}
	return image.Digest()
}

func (a Artifact) image() (v1.Image, error) {
	config := static.NewLayer(a.Config, types.MediaType(a.ConfigType))
	layer := static.NewLayer(a.Content, types.MediaType(a.ContentType))
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: a.Annotations}
	for _, part := range []v1.Layer{config, layer} {
		d, err := partial.Descriptor(part)
		if err != nil {
			return nil, err
		}
		manifest.Layers = append(manifest.Layers, *d)
	}
	manifest.Config, manifest.Layers = manifest.Layers[0], manifest.Layers[1:]
	manifest.Layers[0].Annotations = a.ContentAnnotations
	text, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(artifactImage{a.Config, text, layer})
}

// artifactImage is an artifact's part of an image. Its configuration is of another kind, and stays as it is.
type artifactImage struct {
	config, manifest []byte
	layer            v1.Layer
}

func (artifactImage) MediaType() (types.MediaType, error)                      { return types.OCIManifestSchema1, nil }
func (a artifactImage) RawConfigFile() ([]byte, error)                         { return a.config, nil }
func (a artifactImage) RawManifest() ([]byte, error)                           { return a.manifest, nil }
func (a artifactImage) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }

// errNoIndex is that of a layout without a list of images.
var errNoIndex = errors.New("it names no list of images")

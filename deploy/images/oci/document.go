package oci

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Document is a text about an image, such as its list of materials.
type Document struct {
	MediaType string
	// Title is its file name.
	Title   string
	Content []byte
}

// attach returns a document in the form that registries list among the referrers of image.
func (d Document) attach(image v1.Image) (v1.Image, error) {
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, fmt.Errorf("describe image: %w", err)
	}
	// The kind of an artifact is the media type of its configuration, where it does not say.
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.MediaType(d.MediaType))
	artifact, err = mutate.Append(artifact, mutate.Addendum{
		Layer:       static.NewLayer(d.Content, types.MediaType(d.MediaType)),
		Annotations: map[string]string{"org.opencontainers.image.title": d.Title},
	})
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", d.Title, err)
	}
	return mutate.Subject(artifact, *subject).(v1.Image), nil
}

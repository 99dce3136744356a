package recipe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
	"github.com/gpuslice/gpuslice/deploy/images/sbom"
)

// Image is one that was built.
type Image struct {
	// Name is its reference with a tag, Digest that of the list of its platforms.
	Name   string
	Digest v1.Hash
	// Layout is a folder, Archive a file with the same content, Documents the SPDX documents beside them.
	Layout, Archive string
	Documents       []string
	// Sizes are those of the compressed layers, by platform.
	Sizes map[string]int64
}

// Build builds the images that recipes describe. Where one cannot be built for a platform for want of a compiler, the
// others are built all the same, and the error, which is ErrNoCompiler, comes beside them.
func Build(ctx context.Context, o Options, recipes ...Recipe) ([]Image, error) {
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of images: %w", err)
	}
	var images []Image
	var lacking error
	for _, r := range recipes {
		bundle := oci.Bundle{Name: o.Repository + "/" + r.Name + ":" + o.Version, Labels: r.labels(&o)}
		for _, p := range o.Platforms {
			built, err := r.build(ctx, &o, p)
			if errors.Is(err, ErrNoCompiler) {
				lacking = errors.Join(lacking, fmt.Errorf("%s is not built for %s: %w", r.Name, p, err))
				continue
			}
			if err != nil {
				return images, err
			}
			bundle.Images = append(bundle.Images, built)
		}
		image, err := r.write(&o, bundle)
		if err != nil {
			return images, err
		}
		if image != nil {
			images = append(images, *image)
		}
	}
	return images, lacking
}

// build makes the image for one platform.
func (r Recipe) build(ctx context.Context, o *Options, p v1.Platform) (oci.Built, error) {
	program, err := r.compile(ctx, o, p)
	if err != nil {
		return oci.Built{}, err
	}
	c, err := r.contents(ctx, o, p, program)
	if err != nil {
		return oci.Built{}, err
	}
	var layers []v1.Layer
	for _, files := range c.layers {
		layer, err := oci.Layer(files, filepath.Join(o.Cache, "layers"))
		if err != nil {
			return oci.Built{}, fmt.Errorf("pack %s: %w", r.Name, err)
		}
		layers = append(layers, layer)
	}
	image, err := oci.Image(oci.Config{Platform: p, Entrypoint: []string{r.Program},
		User: user, Labels: r.labels(o), Created: o.Made()}, layers...)
	if err != nil {
		return oci.Built{}, err
	}
	document, err := r.document(o, p, image, c.components)
	return oci.Built{Platform: p, Image: image, Documents: []oci.Document{document}}, err
}

func (r Recipe) document(o *Options, p v1.Platform, image v1.Image, parts []sbom.Component) (oci.Document, error) {
	digest, err := image.Digest()
	if err != nil {
		return oci.Document{}, fmt.Errorf("digest %s: %w", r.Name, err)
	}
	text, err := sbom.Document(sbom.Subject{
		Name: o.Repository + "/" + r.Name, Version: o.Version, Platform: p.String(), Digest: digest.String(), Created: o.Made(), Contents: parts,
	})
	title := fmt.Sprintf("%s-%s-%s.spdx.json", r.Name, p.OS, p.Architecture)
	return oci.Document{MediaType: sbom.MediaType, Title: title, Content: text}, err
}

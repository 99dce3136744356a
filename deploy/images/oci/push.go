package oci

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Destination is where images are pushed to.
type Destination struct {
	// Repository is the registry and the path in it.
	Repository string
	// Tag is the image's tag there; "" is the tag that it has in its layout.
	Tag string
	// PlainHTTP speaks HTTP without TLS to registries other than those of this machine.
	PlainHTTP bool
}

// Push sends the layout in dir, with the documents attached to its images, to a registry, with the credentials that
// `docker login` or `podman login` left. It returns the reference by digest.
func Push(ctx context.Context, dir string, to Destination) (name.Digest, error) {
	descriptor, content, err := named(dir)
	if err != nil {
		return name.Digest{}, fmt.Errorf("read layout %s: %w", dir, err)
	}
	var options []name.Option
	if to.PlainHTTP {
		options = append(options, name.Insecure)
	}
	repository, err := name.NewRepository(to.Repository, options...)
	if err != nil {
		return name.Digest{}, fmt.Errorf("read repository: %w", err)
	}
	if to.Tag == "" {
		to.Tag = descriptor.Annotations[tagAnnotation]
	}
	with := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	tag, err := name.NewTag(repository.Name()+":"+to.Tag, options...)
	if err != nil {
		return name.Digest{}, fmt.Errorf("read tag: %w", err)
	}
	if err := remote.Push(tag, content, with...); err != nil {
		return name.Digest{}, fmt.Errorf("push %s: %w", tag, err)
	}
	if err := pushDocuments(dir, repository, with); err != nil {
		return name.Digest{}, err
	}
	return repository.Digest(descriptor.Digest.String()), nil
}

// named returns the named object of a layout: a list of images, or an artifact.
func named(dir string) (v1.Descriptor, remote.Taggable, error) {
	d, index, err := open(dir)
	if !errors.Is(err, errNoIndex) {
		return d, index, err
	}
	root, all, err := contents(dir)
	if err != nil {
		return d, nil, err
	}
	if len(all) != 1 {
		return d, nil, errNoIndex
	}
	artifact, err := root.Image(all[0].Digest)
	return all[0], artifact, err
}

// pushDocuments sends the documents that refer to the images of a layout: the artifacts beside its index.
func pushDocuments(dir string, to name.Repository, with []remote.Option) error {
	root, all, err := contents(dir)
	if err != nil {
		return fmt.Errorf("read layout %s: %w", dir, err)
	}
	for _, d := range all {
		if !d.MediaType.IsImage() || d.Annotations[tagAnnotation] != "" {
			continue
		}
		artifact, err := root.Image(d.Digest)
		if err != nil {
			return fmt.Errorf("read artifact %s: %w", d.Digest, err)
		}
		if err := remote.Write(to.Digest(d.Digest.String()), artifact, with...); err != nil {
			return fmt.Errorf("push what refers to the images of %s: %w", to, err)
		}
	}
	return nil
}

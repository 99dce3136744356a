package oci

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Config describes how an image runs.
type Config struct {
	Platform        v1.Platform
	Entrypoint, Env []string
	// User is the numeric user and group, with a colon; "" is root.
	User   string
	Labels map[string]string
	// Created is the image's date of creation.
	Created time.Time
}

// Image puts layers, the lowest first, and a configuration together.
func Image(c Config, layers ...v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		OS: c.Platform.OS, Architecture: c.Platform.Architecture, Variant: c.Platform.Variant,
		Created: v1.Time{Time: c.Created.UTC()},
		RootFS:  v1.RootFS{Type: "layers"},
		Config:  v1.Config{Entrypoint: c.Entrypoint, Env: c.Env, User: c.User, Labels: c.Labels, WorkingDir: "/"},
	})
	if err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	for _, l := range layers {
		history := v1.History{Created: v1.Time{Time: c.Created.UTC()}, CreatedBy: "gpuslice images"}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: l, History: history}); err != nil {
			return nil, fmt.Errorf("add layer: %w", err)
		}
	}
	return mutate.Annotations(image, c.Labels).(v1.Image), nil
}

package main

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

// Options describe a release and its place.
type Options struct {
	// Options are those of the images. Their Repository is where the images and the chart will be pulled from.
	recipe.Options
	// Programs are the platforms of the command line.
	Programs []v1.Platform
	// Key is a file with the key that signs; "" for none.
	Key string
	// Builder is who builds, as a URI.
	Builder string
	// Dirty allows changes that are not committed, and a version that the changelog does not have.
	Dirty bool
}

func platformNames(platforms []v1.Platform) (names []string) {
	for _, p := range platforms {
		names = append(names, p.String())
	}
	return names
}

package main

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Options describe a release and its place.
type Options struct {
	Version, Checkout, Out, Cache string
	// Environment is that of Go's commands; nil is this process's.
	Environment []string
	// Registry is where the images and the chart will be pulled from.
	Registry string
	// Images are the platforms of the images, Programs those of the command line.
	Images, Programs []v1.Platform
	// Key is a file with the key that signs; "" for none.
	Key string
	// Builder is who builds, as a URI.
	Builder string
	// Dirty allows changes that are not committed, and a version that the changelog does not have.
	Dirty bool
	// Compilers and Debs are those of the images: see package recipe.
	Compilers map[string]string
	Debs      string
	// NewestLibrary takes the C library that there is, where the locked one is not to be had.
	NewestLibrary bool
	// Created is the time that files say they were made. The zero time is 1970.
	Created time.Time
	Say     func(format string, args ...any)
}

func platformNames(platforms []v1.Platform) (names []string) {
	for _, p := range platforms {
		names = append(names, p.String())
	}
	return names
}

package recipe

import (
	"fmt"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Recipe describes one image.
type Recipe struct {
	// Name is the last part of the image's name.
	Name, Description string
	// Package is that of its program, Program where it stands in the image.
	Package, Program string
	// LoadsDriver reports whether the program loads the driver's library at run time: it is built with a C compiler and needs
	// the C library in its image.
	LoadsDriver bool
	// Brings are further programs of the image: of a recipe among them, Name, Package, Program and LoadsDriver count.
	Brings []Recipe
}

// Recipes returns those of gpuslice's images.
func Recipes() []Recipe {
	return []Recipe{
		{Name: "webhook", Description: "The admission webhook of gpuslice, which gives pods slices of NVIDIA GPUs",
			Package: "./cmd/webhook", Program: "/gpuslice-webhook"},
		{Name: "guard", Description: "The guard of gpuslice, which holds a pod to its slice of an NVIDIA GPU",
			Package: "./cmd/guard", Program: "/gpuslice-guard", LoadsDriver: true,
			Brings: []Recipe{
				{Name: "exec", Package: "./cmd/exec", Program: "/gpuslice-exec"},
				{Name: "prove", Package: "./cmd/prove", Program: "/gpuslice-prove", LoadsDriver: true},
			}},
		{Name: "agent", Description: "The agent of gpuslice, which holds the pods of a node to their slices of NVIDIA GPUs",
			Package: "./cmd/agent", Program: "/gpuslice-agent", LoadsDriver: true},
		{Name: "cli", Description: "The command line of gpuslice, which explains, checks and reports",
			Package: "./cmd/gpuslice", Program: "/gpuslice"},
	}
}

// user is whom an image's program runs as where the pod does not say: nobody in particular.
const user = "65532:65532"

// labels are those that registries and scanners know. Revision is left out where it is not known.
func (r Recipe) labels(o *Options) map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "gpuslice-" + r.Name,
		"org.opencontainers.image.description": r.Description,
		"org.opencontainers.image.source":      "https://github.com/gpuslice/gpuslice",
		"org.opencontainers.image.version":     o.Version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	if o.Revision != "" {
		labels["org.opencontainers.image.revision"] = o.Revision
	}
	if r.LoadsDriver {
		labels["org.opencontainers.image.licenses"] = "Apache-2.0 AND " + libraryLicense
	}
	return labels
}

// libraryLicense is that of the C library as a whole; its parts have further ones, which its copyright file lists.
const libraryLicense = "LGPL-2.1-or-later"

// Platforms returns those that images can be built for.
func Platforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}
}

// ParsePlatforms reads platforms by their names, each once.
func ParsePlatforms(names []string) (all []v1.Platform, err error) {
	for _, name := range names {
		i := slices.IndexFunc(Platforms(), func(p v1.Platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("no images can be built for platform %q: there are linux/amd64 and linux/arm64", name)
		}
		if p := Platforms()[i]; !slices.ContainsFunc(all, p.Equals) {
			all = append(all, p)
		}
	}
	return all, nil
}

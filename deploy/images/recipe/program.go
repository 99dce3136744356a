package recipe

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/sbom"
)

// Program is a compiled program, and the documents beside it.
type Program struct {
	Content   []byte
	Component sbom.Component
	// Licenses are the texts by module and file name.
	Licenses map[string]map[string]string
}

// CommandLine returns the recipe of the program gpuslice, which is in no image.
func CommandLine() Recipe { return Recipe{Name: "gpuslice", Package: "./cmd/gpuslice"} }

// Compile builds the recipe's program for one platform. Without the driver's library, that may be any that Go has.
func (r Recipe) Compile(ctx context.Context, o Options, p v1.Platform) (Program, error) {
	content, err := r.compile(ctx, &o, p)
	if err != nil {
		return Program{}, err
	}
	component, texts, err := describe(ctx, &o, content)
	if err != nil {
		return Program{}, fmt.Errorf("describe %s for %s: %w", r.Name, p, err)
	}
	return Program{Content: content, Component: component, Licenses: texts}, nil
}

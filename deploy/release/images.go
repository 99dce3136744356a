package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

// buildImages leaves the layouts for the upload in the folder oci, and the archives and documents at the top.
func (w *work) buildImages(ctx context.Context) (err error) {
	if w.images, err = recipe.Build(ctx, w.recipeOptions(), recipe.Recipes()...); err != nil {
		return err
	}
	for _, i := range w.images {
		for _, path := range append([]string{i.Archive}, i.Documents...) {
			name := strings.TrimSuffix(filepath.Base(path), ".tar")
			if path == i.Archive {
				name += "-image.tar"
			}
			if err := os.Rename(path, filepath.Join(w.dir, w.named(name))); err != nil {
				return fmt.Errorf("place images: %w", err)
			}
		}
	}
	return nil
}

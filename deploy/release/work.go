package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

// work is a release that is being made.
type work struct {
	Options
	sources Sources
	signer  *signer
	dir     string
	images  []recipe.Image
	// chart is the digest of the chart's manifest.
	chart v1.Hash
	// archives are those of the command line.
	archives []archive
}

// notesFile is the text of the release page. It is not on it as a file, and so not among the checksums.
const notesFile = "notes.md"

// write places a file of the release.
func (w *work) write(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(w.dir, name), content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (w *work) recipeOptions() recipe.Options {
	o := w.Options.Options
	o.Out, o.Revision = filepath.Join(w.dir, "oci"), w.sources.Commit
	o.Say = func(format string, args ...any) { w.Say("      "+format, args...) }
	return o
}

// named begins the name of a file with the project and the version, so that it is unique in a folder of downloads.
func (w *work) named(rest string) string { return "gpuslice_" + w.Version + "_" + rest }

// digests are those of the images by name.
func (w *work) digests() map[string]v1.Hash {
	all := map[string]v1.Hash{}
	for n, r := range recipe.Recipes() {
		all[r.Name] = w.images[n].Digest
	}
	return all
}

// reference is the reference by which a node pulls an image.
func (w *work) reference(name string) string {
	return w.Repository + "/" + name + "@" + w.digests()[name].String()
}

// flat are the names of the files at the top: those of a release page.
func flat(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list files of the release: %w", err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

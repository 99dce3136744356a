package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

// releaseStep is one part of a release.
type releaseStep struct {
	name string
	do   func(context.Context) error
}

// Make makes the release in o.Out and returns its files. An earlier one stays until all is made.
func Make(ctx context.Context, o Options) ([]string, error) {
	from, err := sources(ctx, o)
	if err != nil {
		return nil, err
	}
	sign, err := newSigner(o.Key)
	if err != nil {
		return nil, err
	}
	w := &work{Options: o, sources: from, signer: sign, dir: o.Out + ".part"}
	if err := w.CheckCompilers(recipe.Recipes()...); err != nil {
		return nil, fmt.Errorf("%w; or leave its platform out with --platform (make release PLATFORMS=%s)", err, recipe.Platforms()[0])
	}
	if err := errors.Join(os.RemoveAll(w.dir), os.MkdirAll(w.dir, 0o755)); err != nil {
		return nil, fmt.Errorf("make folder of the release: %w", err)
	}
	steps := w.steps()
	for n, s := range steps {
		o.Say("[%d/%d] %s", n+1, len(steps), s.name)
		if err := s.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := errors.Join(os.RemoveAll(o.Out), os.Rename(w.dir, o.Out)); err != nil {
		return nil, fmt.Errorf("place the release: %w", err)
	}
	return w.list()
}

func (w *work) steps() []releaseStep {
	steps := []releaseStep{{"images for " + fmt.Sprint(platformNames(w.Platforms)), w.buildImages}}
	for _, p := range w.Programs {
		steps = append(steps, releaseStep{"gpuslice for " + p.String(), func(ctx context.Context) error { return w.buildProgram(ctx, p) }})
	}
	steps = append(steps, releaseStep{"chart", w.buildChart}, releaseStep{"install.yaml, krew.yaml, images.txt", w.writeManifests},
		releaseStep{"provenance", w.writeProvenance}, releaseStep{"checksums", w.writeSums})
	if w.signer != nil {
		steps = append(steps, releaseStep{"signatures", w.writeSignatures})
	}
	return append(steps, releaseStep{"notes", func(context.Context) error { return w.write(notesFile, []byte(w.sources.Changes+"\n")) }})
}

// list returns the paths of the files.
func (w *work) list() (paths []string, err error) {
	names, err := flat(w.Out)
	for _, n := range names {
		paths = append(paths, filepath.Join(w.Out, n))
	}
	return paths, err
}

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
	"github.com/gpuslice/gpuslice/deploy/images/sbom"
)

// archive is one of the command line.
type archive struct {
	Platform v1.Platform
	// Name is its file, Program the one in it.
	Name, Program, SHA256 string
}

// buildProgram writes the archive of the command line for one platform, and its SPDX document.
func (w *work) buildProgram(ctx context.Context, p v1.Platform) error {
	program, err := recipe.CommandLine().Compile(ctx, w.recipeOptions(), p)
	if err != nil {
		return err
	}
	return w.writeProgram(p, program)
}

func (w *work) writeProgram(p v1.Platform, program recipe.Program) error {
	base := w.named(p.OS + "_" + p.Architecture)
	a, content, err := pack(base, p, program, w.Made())
	if err != nil {
		return err
	}
	document, err := sbom.Document(sbom.Subject{Name: "gpuslice", Version: w.Version,
		Platform: p.String(), Digest: "sha256:" + a.SHA256, Archive: true,
		Created: w.Made(), Contents: []sbom.Component{program.Component}})
	if err != nil {
		return err
	}
	w.archives = append(w.archives, a)
	if err := w.write(base+".spdx.json", document); err != nil {
		return err
	}
	return w.write(a.Name, content)
}

// pack makes an archive of a program and the licenses of its parts.
func pack(base string, p v1.Platform, program recipe.Program, made time.Time) (archive, []byte, error) {
	a := archive{Platform: p, Name: base + ".tar.gz", Program: "gpuslice"}
	format := tarball
	if p.OS == "windows" {
		a.Name, a.Program, format = base+".zip", "gpuslice.exe", zipped
	}
	files := map[string]file{a.Program: {0o755, program.Content}}
	for module, texts := range program.Licenses {
		for name, text := range texts {
			files[path.Join("licenses", module, name)] = file{0o644, []byte(text)}
			if strings.HasSuffix(module, "gpuslice/gpuslice") {
				files[name] = file{0o644, []byte(text)}
			}
		}
	}
	content, err := format(files, made)
	if err != nil {
		return a, nil, fmt.Errorf("pack %s: %w", a.Name, err)
	}
	a.SHA256 = fmt.Sprintf("%x", sha256.Sum256(content))
	return a, content, nil
}

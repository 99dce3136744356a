package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"github.com/gpuslice/gpuslice/deploy/images/debian"
	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

// resource is a file, an image or a material, in the words of in-toto.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// writeProvenance writes the sources and the builder of the release, as SLSA's provenance in a statement of in-toto.
func (w *work) writeProvenance(ctx context.Context) error {
	subjects, err := w.subjects()
	if err != nil {
		return err
	}
	materials, err := w.materials()
	if err != nil {
		return err
	}
	tools, err := w.tools(ctx)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType": source + "/tree/main/deploy/release",
				"externalParameters": map[string]any{"version": w.Version, "registry": w.Repository, "images": platformNames(w.Platforms),
					"programs": platformNames(w.Programs)},
				"internalParameters":   map[string]any{"tools": tools, "dirty": w.sources.Dirty},
				"resolvedDependencies": materials,
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": w.Builder}},
		},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("write provenance: %w", err)
	}
	return w.write(w.named("provenance.json"), append(text, '\n'))
}

// subjects are all that was made.
func (w *work) subjects() (all []resource, err error) {
	files, err := sums(w.dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		all = append(all, resource{Name: f.name, Digest: map[string]string{"sha256": f.sha256}})
	}
	for _, r := range recipe.Recipes() {
		all = append(all, resource{Name: w.Repository + "/" + r.Name, Digest: map[string]string{"sha256": w.digests()[r.Name].Hex}})
	}
	return append(all, resource{Name: w.Repository + "/" + chartPath, Digest: map[string]string{"sha256": w.chart.Hex}}), nil
}

// materials are the sources outside the commit, and the commit. Go's modules are pinned in its go.sum.
func (w *work) materials() ([]resource, error) {
	lock, err := debian.Locked()
	if err != nil {
		return nil, err
	}
	all := []resource{{URI: "git+" + source + "@refs/tags/" + w.Version, Digest: map[string]string{"gitCommit": w.sources.Commit}}}
	for _, p := range w.Platforms {
		version := strings.ReplaceAll(lock.Version, "+", "%2B")
		all = append(all, resource{URI: fmt.Sprintf("pkg:deb/debian/libc6@%s?arch=%s&distro=debian-%s", version, p.Architecture, lock.Release),
			Digest: map[string]string{"sha256": lock.SHA256[p.Architecture]}})
	}
	return all, nil
}

// tools are the compilers by their names, with the versions that they report.
func (w *work) tools(ctx context.Context) (map[string]string, error) {
	commands := map[string]string{"go": "go version"}
	for _, p := range w.Platforms {
		cc, err := w.Compiler(p.Architecture)
		if err != nil {
			return nil, err
		}
		commands["cc "+p.Architecture] = cc + " --version"
	}
	for name, command := range commands {
		words := strings.Fields(command)
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Dir, cmd.Env = w.Checkout, w.Environment
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("read the version of %s: %w", words[0], err)
		}
		commands[name], _, _ = strings.Cut(string(out), "\n")
	}
	return commands, nil
}

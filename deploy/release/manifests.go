package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

func (w *work) writeManifests(context.Context) error {
	install, err := installation(w.Version, w.reference)
	if err != nil {
		return err
	}
	plugin, err := krew(w.Version, w.archives)
	if err != nil {
		return err
	}
	references := ""
	for _, r := range recipe.Recipes() {
		references += w.reference(r.Name) + "\n"
	}
	references += w.Repository + "/" + chartPath + "@" + w.chart.String() + "\n"
	return errors.Join(w.write("install.yaml", install), w.write("krew.yaml", plugin), w.write("images.txt", []byte(references)))
}

var (
	// chartLine and chartValue are marks of the manifests, which mean something for the chart alone.
	chartLine  = regexp.MustCompile(`(?m)^ *# chart: .*\n`)
	chartValue = regexp.MustCompile(`(?m) # chart: .*$`)
	// placeholder stands in manifests in the place of an image.
	placeholder = regexp.MustCompile(`gpuslice/([a-z]+):VERSION`)
)

// installation returns the manifests in one file, with the images by their references.
func installation(version string, reference func(image string) string) ([]byte, error) {
	names, err := fs.Glob(deploy.Files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	out := "# gpuslice " + version + ": kubectl apply --server-side -f install.yaml\n"
	for _, name := range names {
		text, err := fs.ReadFile(deploy.Files, name)
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		plain := chartValue.ReplaceAllString(chartLine.ReplaceAllString(string(text), ""), "")
		plain = placeholder.ReplaceAllStringFunc(plain, func(found string) string { return reference(placeholder.FindStringSubmatch(found)[1]) })
		out += "---\n" + strings.TrimPrefix(strings.TrimSpace(plain), "---\n") + "\n"
	}
	return []byte(out), nil
}

// krew returns the manifest by which krew installs the command line as a plugin of kubectl.
func krew(version string, archives []archive) ([]byte, error) {
	var platforms []any
	for _, a := range archives {
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": a.Platform.OS, "arch": a.Platform.Architecture}},
			"uri":      source + "/releases/download/" + version + "/" + a.Name, "sha256": a.SHA256, "bin": a.Program,
			"files": []map[string]string{{"from": a.Program, "to": "."}, {"from": "LICENSE", "to": "."}},
		})
	}
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]string{"name": "gpuslice"},
		"spec": map[string]any{
			"version": version, "homepage": source, "platforms": platforms,
			"shortDescription": "Show and check slices of NVIDIA GPUs",
			"description":      "Shows what gpuslice makes of a pod that requests a share of a GPU, explains denials, and checks the installation.",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("write krew manifest: %w", err)
	}
	return out, nil
}

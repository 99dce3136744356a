package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

// chartPath is where the chart is in the registry: the last part is its name.
const chartPath = "charts/gpuslice"

// buildChart writes the chart as a file and as an OCI layout for the upload.
func (w *work) buildChart(context.Context) error {
	files, err := w.chartFiles(os.DirFS(filepath.Join(w.Checkout, "deploy", "chart")))
	if err != nil {
		return err
	}
	packed, err := tarball(files, w.Made())
	if err != nil {
		return err
	}
	config, err := yaml.YAMLToJSON(files["gpuslice/Chart.yaml"].content)
	if err != nil {
		return fmt.Errorf("read Chart.yaml: %w", err)
	}
	version := strings.TrimPrefix(w.Version, "v")
	artifact := oci.Artifact{
		Name:       w.Repository + "/" + chartPath + ":" + version,
		ConfigType: "application/vnd.cncf.helm.config.v1+json", Config: config,
		ContentType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Content: packed,
		Annotations: map[string]string{
			"org.opencontainers.image.title": "gpuslice", "org.opencontainers.image.version": version, "org.opencontainers.image.source": source,
			"org.opencontainers.image.revision": w.sources.Commit, "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	folder := filepath.Join(w.dir, "oci", filepath.FromSlash(chartPath))
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("make folder of the chart: %w", err)
	}
	if w.chart, err = artifact.WriteLayout(folder); err != nil {
		return err
	}
	return w.write("gpuslice-"+version+".tgz", packed)
}

// chartFiles are the files of the chart's archive: those of the checkout, with the version and the images in them.
func (w *work) chartFiles(chart fs.FS) (map[string]file, error) {
	files := map[string]file{}
	err := fs.WalkDir(chart, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(chart, name)
		switch name {
		case "Chart.yaml":
			text, err = w.chartMetadata(text)
		case "values.yaml":
			text, err = w.chartValues(string(text))
		}
		files[path.Join("gpuslice", name)] = file{0o644, text}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chart: %w", err)
	}
	return files, nil
}

// chartMetadata sets the versions of Chart.yaml, and the fields that Artifact Hub shows.
func (w *work) chartMetadata(text []byte) ([]byte, error) {
	var c map[string]any
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return nil, err
	}
	images := []map[string]any{}
	for _, r := range recipe.Recipes() {
		images = append(images, map[string]any{"name": r.Name, "image": w.reference(r.Name), "platforms": platformNames(w.Platforms)})
	}
	inImages, err := json.MarshalIndent(images, "", "  ")
	if err != nil {
		return nil, err
	}
	inChanges, err := yaml.Marshal(changes(w.sources.Changes))
	if err != nil {
		return nil, err
	}
	c["version"], c["appVersion"] = strings.TrimPrefix(w.Version, "v"), w.Version
	annotations, _ := c["annotations"].(map[string]any)
	if annotations == nil {
		return nil, errors.New("it has no annotations")
	}
	annotations["artifacthub.io/prerelease"] = fmt.Sprint(strings.Contains(w.Version, "-"))
	annotations["artifacthub.io/images"] = string(inImages)
	annotations["artifacthub.io/changes"] = string(inChanges)
	return yaml.Marshal(c)
}

// errChart is that of values that are not as this program knows them.
var errChart = errors.New("values.yaml is not as expected")

// chartValues puts the images into values.yaml, whose comments stay.
func (w *work) chartValues(text string) ([]byte, error) {
	const noDigest = `digest: ""`
	for _, r := range recipe.Recipes() {
		before, after, found := strings.Cut(text, "repository: gpuslice/"+r.Name+"\n")
		between, after, digest := strings.Cut(after, noDigest)
		if !found || !digest || strings.Contains(between, "repository: ") {
			return nil, fmt.Errorf("%w: image %s has no repository with a digest after it", errChart, r.Name)
		}
		text = before + "repository: " + w.Repository + "/" + r.Name + "\n" + between + "digest: " + w.digests()[r.Name].String() + after
	}
	return []byte(text), nil
}

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/deploy/images/recipe"
	"github.com/gpuslice/gpuslice/deploy/images/sbom"
	"github.com/gpuslice/gpuslice/test/install"
)

// madeOf makes all of a release but what takes a compiler: its images are digests, its programs a line of text.
func madeOf(t *testing.T, key string) *work {
	t.Helper()
	sign, err := newSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	w := &work{
		Options: Options{
			Options: recipe.Options{Version: "v1.2.3", Checkout: "../..", Repository: "registry.example.com/team",
				Platforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, Say: t.Logf},
			Programs: commandLines(), Builder: "https://example.com/builder",
		},
		sources: Sources{Commit: strings.Repeat("c", 40), Changes: section(changelog, "v1.2.3")}, signer: sign, dir: t.TempDir(),
	}
	for n, r := range recipe.Recipes() {
		w.images = append(w.images, recipe.Image{Name: r.Name, Digest: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat(fmt.Sprint(n), 64)}})
	}
	for _, p := range w.Programs {
		content := []byte("for " + p.String())
		info := &buildinfo.BuildInfo{GoVersion: "go1.26.0", Path: "github.com/gpuslice/gpuslice/cmd/gpuslice"}
		info.Main.Path = "github.com/gpuslice/gpuslice"
		program := recipe.Program{
			Content:   content,
			Component: sbom.Program(info, w.Version, fmt.Sprintf("%x", sha256.Sum256(content)), func(string) string { return "MIT" }),
			Licenses:  map[string]map[string]string{info.Main.Path: {"LICENSE": "ours"}, "example.com/other": {"COPYING": "theirs"}},
		}
		if err := w.writeProgram(p, program); err != nil {
			t.Fatal(err)
		}
	}
	steps := []func() error{
		func() error { return w.buildChart(t.Context()) }, func() error { return w.writeManifests(t.Context()) },
		func() error { return w.writeProvenance(t.Context()) }, func() error { return w.writeSums(t.Context()) },
	}
	if sign != nil {
		steps = append(steps, func() error { return w.writeSignature(t.Context()) })
	}
	for _, do := range steps {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// readAll returns the files below a folder.
func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMadeTwice(t *testing.T) {
	t.Parallel()
	t.Run("gives the same bytes", func(t *testing.T) {
		t.Parallel()
		key := pkcs8(t, ecKey(t))
		first, second := readAll(t, madeOf(t, key).dir), readAll(t, madeOf(t, key).dir)
		if len(first) < 20 {
			t.Errorf("there are only %d files", len(first))
		}
		for name := range first {
			if first[name] != second[name] {
				t.Errorf("%s differs", name)
			}
		}
	})
}

func TestSums(t *testing.T) {
	t.Parallel()
	t.Run("are of all files, and sha256sum verifies them", func(t *testing.T) {
		t.Parallel()
		dir := madeOf(t, pkcs8(t, edKey(t))).dir
		verifySums(t, dir)
		if err := openssl(t, dir); err != nil {
			t.Errorf("the signature is not verified: %v", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "install.yaml"), []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		if sha256sum(dir) == nil {
			t.Error("a changed file is verified too")
		}
	})
}

func sha256sum(dir string) error {
	cmd := exec.Command("sha256sum", "--check", "--strict", "--quiet", sumsFile)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// verifySums holds that every file is among the checksums, and has its own.
func verifySums(t *testing.T, dir string) {
	t.Helper()
	if err := sha256sum(dir); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	names, err := flat(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		without := []string{sumsFile, sumsFile + ".sig", "gpuslice.pub", notesFile}
		if strings.Contains(string(text), "  "+name+"\n") == slices.Contains(without, name) {
			t.Errorf("%s: %s among the checksums", name, text)
		}
	}
}

func TestArchives(t *testing.T) {
	t.Parallel()
	t.Run("hold the program and the licenses", func(t *testing.T) {
		t.Parallel()
		w := madeOf(t, "")
		files := readAll(t, w.dir)
		want := []string{"LICENSE", "PROGRAM", "licenses/example.com/other/COPYING", "licenses/github.com/gpuslice/gpuslice/LICENSE"}
		for _, a := range w.archives {
			members := tarOf(t, files[a.Name], a.Name)
			if got := members[a.Program]; got != "for "+a.Platform.String() {
				t.Errorf("%s: the program is %q", a.Name, got)
			}
			var names []string
			for name := range members {
				names = append(names, strings.Replace(name, a.Program, "PROGRAM", 1))
			}
			slices.Sort(names)
			if a.Program == "gpuslice" { // which is in a path too
				for n := range names {
					names[n] = strings.Replace(names[n], "PROGRAM/gpuslice", "gpuslice/gpuslice", 1)
				}
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("%s (-want +got)\n%s", a.Name, diff)
			}
			if !strings.Contains(files[strings.TrimSuffix(strings.TrimSuffix(a.Name, ".zip"), ".tar.gz")+".spdx.json"], a.SHA256) {
				t.Errorf("%s: no SPDX document names it", a.Name)
			}
		}
	})
}

func TestKrew(t *testing.T) {
	t.Parallel()
	t.Run("names every archive with its digest", func(t *testing.T) {
		t.Parallel()
		w := madeOf(t, "")
		files := readAll(t, w.dir)
		var plugin struct {
			Kind string
			Spec struct {
				Version   string
				Platforms []struct{ URI, SHA256, Bin string }
			}
		}
		if err := yaml.Unmarshal([]byte(files["krew.yaml"]), &plugin); err != nil {
			t.Fatal(err)
		}
		if plugin.Kind != "Plugin" || plugin.Spec.Version != "v1.2.3" || len(plugin.Spec.Platforms) != 5 {
			t.Errorf("%+v", plugin)
		}
		for _, p := range plugin.Spec.Platforms {
			name, ok := strings.CutPrefix(p.URI, source+"/releases/download/v1.2.3/")
			if got := fmt.Sprintf("%x", sha256.Sum256([]byte(files[name]))); !ok || files[name] == "" || got != p.SHA256 {
				t.Errorf("%s has the digest %s, and the manifest %s", p.URI, got, p.SHA256)
			}
			if !strings.HasPrefix(p.Bin, "gpuslice") {
				t.Errorf("the program is %q", p.Bin)
			}
		}
	})
}

// imageReference is one of ours, wherever it stands.
var imageReference = regexp.MustCompile(`[a-z0-9.:-]+(/[a-z0-9.-]+)*/(webhook|guard|agent)(:[A-Za-z0-9_.-]+|@sha256:[0-9a-f]{64})`)

func TestInstallation(t *testing.T) {
	t.Parallel()
	t.Run("is the manifests with the images by digest", func(t *testing.T) {
		t.Parallel()
		w := madeOf(t, "")
		text := readAll(t, w.dir)["install.yaml"]
		got, err := install.Objects([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		plain := ""
		for _, name := range manifests(t) {
			part, err := deploy.Files.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			plain += "\n---\n" + string(part)
		}
		for _, image := range []string{"webhook", "guard"} {
			plain = strings.ReplaceAll(plain, "gpuslice/"+image+":VERSION", w.reference(image))
		}
		want, err := install.Objects([]byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) < 10 {
			t.Errorf("%d objects (-manifests +install.yaml)\n%s", len(got), diff)
		}
		if found := imageReference.FindAllString(text, -1); len(found) != 3 {
			t.Errorf("images %q", found)
		}
		for _, found := range imageReference.FindAllString(text, -1) {
			if found != w.reference("webhook") && found != w.reference("guard") {
				t.Errorf("%s is none of the release's", found)
			}
		}
		if strings.Contains(text, "# chart:") {
			t.Error("a mark of the chart is left")
		}
	})
}

func manifests(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("../[1-9]*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for n := range all {
		all[n] = filepath.Base(all[n])
	}
	return all
}

func TestChart(t *testing.T) {
	t.Parallel()
	t.Run("carries the version, the images by digest and all files", func(t *testing.T) {
		t.Parallel()
		w := madeOf(t, "")
		files := readAll(t, w.dir)
		members := tarOf(t, files["gpuslice-1.2.3.tgz"], "x.tar.gz")
		for name := range readAll(t, "../chart") {
			if members["gpuslice/"+filepath.ToSlash(name)] == "" {
				t.Errorf("%s is missing", name)
			}
		}
		var chart struct {
			Name, Version, AppVersion string
			Annotations               map[string]string
		}
		if err := yaml.Unmarshal([]byte(members["gpuslice/Chart.yaml"]), &chart); err != nil {
			t.Fatal(err)
		}
		var images []struct{ Name, Image string }
		if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/images"]), &images); err != nil {
			t.Fatal(err)
		}
		var listed []change
		if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/changes"]), &listed); err != nil {
			t.Fatal(err)
		}
		if chart.Name != "gpuslice" || chart.Version != "1.2.3" || chart.AppVersion != "v1.2.3" ||
			len(images) != len(recipe.Recipes()) || len(listed) != 3 {
			t.Errorf("%+v", chart)
		}
		type image struct{ Repository, Digest string }
		var values struct {
			Image        image
			Guard, Agent struct{ Image image }
		}
		if err := yaml.Unmarshal([]byte(members["gpuslice/values.yaml"]), &values); err != nil {
			t.Fatal(err)
		}
		for n, v := range []image{values.Image, values.Guard.Image, values.Agent.Image} {
			if got := v.Repository + "@" + v.Digest; got != w.reference(images[n].Name) || got != images[n].Image {
				t.Errorf("%s is %s in the values and %s in Chart.yaml", w.reference(images[n].Name), got, images[n].Image)
			}
		}
	})
	t.Run("values without a place for an image are an error", func(t *testing.T) {
		t.Parallel()
		w := madeOf(t, "")
		if _, err := w.chartValues("image:\n  repository: gpuslice/webhook\n  tag: x\n"); err == nil {
			t.Error("there is no error")
		}
	})
}

func TestProvenance(t *testing.T) {
	t.Parallel()
	t.Run("names all files, the images and the commit", func(t *testing.T) {
		t.Parallel()
		w := madeOf(t, "")
		files := readAll(t, w.dir)
		var p struct {
			Type          string `json:"_type"`
			PredicateType string
			Subject       []resource
			Predicate     struct {
				BuildDefinition struct {
					ResolvedDependencies []resource
					InternalParameters   struct{ Tools map[string]string }
				}
				RunDetails struct{ Builder struct{ ID string } }
			}
		}
		if err := json.Unmarshal([]byte(files[w.named("provenance.json")]), &p); err != nil {
			t.Fatal(err)
		}
		if p.Type != "https://in-toto.io/Statement/v1" || p.PredicateType != "https://slsa.dev/provenance/v1" ||
			p.Predicate.RunDetails.Builder.ID != w.Builder {
			t.Errorf("%+v", p)
		}
		subjects := map[string]string{}
		for _, s := range p.Subject {
			subjects[s.Name] = s.Digest["sha256"]
		}
		for name, text := range files {
			if filepath.Dir(name) == "." && name != w.named("provenance.json") && name != sumsFile &&
				subjects[name] != fmt.Sprintf("%x", sha256.Sum256([]byte(text))) {
				t.Errorf("%s has the digest %q", name, subjects[name])
			}
		}
		if subjects[w.Repository+"/guard"] != w.digests()["guard"].Hex || subjects[w.Repository+"/"+chartPath] != w.chart.Hex {
			t.Errorf("%v", subjects)
		}
		build := p.Predicate.BuildDefinition
		if len(build.ResolvedDependencies) != 2 || build.ResolvedDependencies[0].Digest["gitCommit"] != w.sources.Commit ||
			!strings.HasPrefix(build.InternalParameters.Tools["go"], "go version go1") {
			t.Errorf("%+v", build)
		}
	})
}

// tarOf returns the members of an archive by name.
func tarOf(t *testing.T, content, name string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			all[f.Name] = readMember(t, r)
		}
		return all
	}
	z, err := gzip.NewReader(bytes.NewReader([]byte(content)))
	if err != nil {
		t.Fatal(err)
	}
	eachMember(t, z, func(name string, r io.Reader) { all[name] = readMember(t, r) })
	return all
}

func eachMember(t *testing.T, in io.Reader, do func(string, io.Reader)) {
	t.Helper()
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		do(h.Name, r)
	}
}

func readMember(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

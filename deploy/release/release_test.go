package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
	"github.com/gpuslice/gpuslice/deploy/images/recipe"
	"github.com/gpuslice/gpuslice/test/cluster"
)

// trial are options for a release of this checkout for this machine's platform, or skip the test.
func trial(t *testing.T, at string) Options {
	t.Helper()
	if !cluster.Wanted("images") {
		t.Skip("builds the images: set GPUSLICE_TEST=images to run it, with a C compiler and, for the first time, apt-get")
	}
	from, err := recipe.Checkout()
	if err != nil {
		t.Fatal(err)
	}
	cache, environment, err := cluster.BuildSettings()
	if err != nil {
		t.Fatal(err)
	}
	here := []v1.Platform{{OS: runtime.GOOS, Architecture: runtime.GOARCH}}
	return Options{
		Options: recipe.Options{Version: "v0.0.0-test", Checkout: from,
			Out: filepath.Join(t.TempDir(), "release"), Cache: filepath.Join(cache, "images"),
			Environment: environment, Repository: at, Platforms: here, Newest: true, Say: t.Logf},
		Programs: here, Key: pkcs8(t, ecKey(t)), Builder: "https://example.com/builder", Dirty: true,
	}
}

// TestRelease makes a release twice, uploads it to a registry of its own, and pulls what the release names.
func TestRelease(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	o := trial(t, strings.TrimPrefix(server.URL, "http://")+"/team")
	if _, err := Make(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	again := o
	again.Out = filepath.Join(t.TempDir(), "release")
	if _, err := Make(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	files := readAll(t, o.Out)
	t.Run("made twice it is the same bytes", func(t *testing.T) {
		for name, text := range readAll(t, again.Out) {
			if files[name] != text {
				t.Errorf("%s differs", name)
			}
		}
	})
	t.Run("checksums and signature are verified", func(t *testing.T) {
		verifySums(t, o.Out)
		if err := openssl(t, o.Out); err != nil {
			t.Error(err)
		}
	})
	t.Run("the program knows its version", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "gpuslice")
		members := tarOf(t, files["gpuslice_v0.0.0-test_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"], ".tar.gz")
		if err := os.WriteFile(program, []byte(members["gpuslice"]), 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput(); err != nil ||
			string(out) != "gpuslice v0.0.0-test\n" {
			t.Errorf("%q, %v", out, err)
		}
		if members["licenses/github.com/spf13/cobra/LICENSE.txt"] == "" || members["licenses/std/LICENSE"] == "" {
			t.Error("licenses are missing")
		}
	})
	parts := []string{chartPath}
	for _, r := range recipe.Recipes() {
		parts = append(parts, r.Name)
	}
	for _, part := range parts {
		for _, suffix := range []string{"", oci.SignatureSuffix} {
			if _, err := oci.Push(t.Context(), filepath.Join(o.Out, "oci", filepath.FromSlash(part)+suffix),
				oci.Destination{Repository: o.Repository + "/" + part}); err != nil {
				t.Fatal(err)
			}
		}
	}
	references := strings.Fields(files["images.txt"])
	t.Run("the registry has what images.txt names", func(t *testing.T) {
		if len(references) != len(parts) {
			t.Errorf("there are %q and no others, not %q", parts, references)
		}
		pullAll(t, references)
	})
	t.Run("each has a signature in the registry", func(t *testing.T) {
		for _, reference := range references {
			if err := verifyImage(reference, files["gpuslice.pub"]); err != nil {
				t.Errorf("%s: %v", reference, err)
			}
		}
	})
	t.Run("install.yaml names images of the registry", func(t *testing.T) {
		sameImages(t, files["install.yaml"], references[:2])
	})
	t.Run("helm renders the chart from the registry", func(t *testing.T) {
		rendered := helm(t, "template", "gpuslice", "oci://"+o.Repository+"/"+chartPath,
			"--version=0.0.0-test", "--plain-http", "--set=agent.enabled=true")
		sameImages(t, rendered, references[:3])
		if shown := helm(t, "show", "chart",
			filepath.Join(o.Out, "gpuslice-0.0.0-test.tgz")); !strings.Contains(shown, "appVersion: v0.0.0-test") {
			t.Error(shown)
		}
	})
}

// pullAll holds that every reference is in its registry, whole.
func pullAll(t *testing.T, references []string) {
	t.Helper()
	for _, text := range references {
		reference, err := name.NewDigest(text)
		if err != nil {
			t.Fatal(err)
		}
		found, err := remote.Get(reference)
		if err != nil {
			t.Fatal(err)
		}
		if !found.MediaType.IsIndex() {
			continue // the chart, which helm reads
		}
		index, err := found.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// sameImages holds that a text names these images and no other of ours.
func sameImages(t *testing.T, text string, want []string) {
	t.Helper()
	found := imageReference.FindAllString(text, -1)
	slices.Sort(found)
	sorted := slices.Clone(want)
	slices.Sort(sorted)
	if got := slices.Compact(found); !slices.Equal(got, sorted) {
		t.Errorf("it names the images %q, and the release has %q", got, sorted)
	}
}

// helm runs the command with nothing of this machine's own settings, and returns what it prints.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	bin, err := cluster.Build(t.Context(), os.Stderr, cluster.Helm())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin["helm"], args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

package oci

import (
	"bytes"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const kind = "application/spdx+json"

// twoPlatforms is a small image for two platforms, with a document about each.
func twoPlatforms(t *testing.T) Bundle {
	t.Helper()
	b := Bundle{Name: "gpuslice/small:v1", Labels: map[string]string{"org.opencontainers.image.version": "v1"}}
	for _, arch := range []string{"amd64", "arm64"} {
		layer, err := Layer(map[string]File{"/program": Program([]byte("for " + arch))}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		p := v1.Platform{OS: "linux", Architecture: arch}
		image, err := Image(Config{Platform: p, Entrypoint: []string{"/program"},
			User: "65532:65532", Labels: b.Labels, Created: time.Unix(7, 0)}, layer)
		if err != nil {
			t.Fatal(err)
		}
		document := Document{MediaType: kind, Title: "small-" + arch + ".json", Content: []byte(`{"about": "` + arch + `"}`)}
		b.Images = append(b.Images, Built{Platform: p, Image: image, Documents: []Document{document}})
	}
	return b
}

// layoutOf writes a bundle twice, the second time over the first, and returns the folder.
func layoutOf(t *testing.T, b Bundle) (string, v1.Hash) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	first, err := b.WriteLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.WriteLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("the same images have the digests %s and %s", first, second)
	}
	return dir, first
}

func TestLayout(t *testing.T) {
	t.Parallel()
	t.Run("has a valid image for each platform", func(t *testing.T) {
		t.Parallel()
		dir, digest := layoutOf(t, twoPlatforms(t))
		named, index, err := open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if named.Digest != digest || named.Annotations["io.containerd.image.name"] != "docker.io/gpuslice/small:v1" {
			t.Errorf("the layout names %s as %v", named.Digest, named.Annotations)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		list, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var platforms []string
		for _, m := range list.Manifests {
			platforms = append(platforms, m.Platform.String())
		}
		if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
			t.Errorf("platforms (-want +got)\n%s", diff)
		}
	})
}

func TestArchive(t *testing.T) {
	t.Parallel()
	t.Run("is read by what reads Docker's archives", func(t *testing.T) {
		t.Parallel()
		dir, _ := layoutOf(t, twoPlatforms(t))
		var first, second bytes.Buffer
		for _, out := range []*bytes.Buffer{&first, &second} {
			if err := WriteArchive(dir, out); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Error("the same layout archived twice differs")
		}
		tag, err := name.NewTag("docker.io/gpuslice/small:v1")
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(first.Bytes())), nil }, &tag)
		if err != nil {
			t.Fatal(err)
		}
		var content bytes.Buffer
		if _, err := io.Copy(&content, mutate.Extract(image)); err != nil || !strings.Contains(content.String(), "for amd64") {
			t.Errorf("the first platform's image is not in it: %v", err)
		}
	})
	t.Run("names without a tag or images are errors", func(t *testing.T) {
		t.Parallel()
		if _, err := (Bundle{Name: "UPPER case"}).WriteLayout(filepath.Join(t.TempDir(), "x")); err == nil {
			t.Error("a name that is none is taken")
		}
		if err := WriteArchive(t.TempDir(), io.Discard); err == nil {
			t.Error("an empty folder is a layout")
		}
	})
}

func TestPush(t *testing.T) {
	t.Parallel()
	t.Run("the images have their documents as referrers", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			name string
			with []registry.Option
		}{
			{"a registry that lists referrers", []registry.Option{registry.WithReferrersSupport(true)}},
			{"a registry that does not", nil},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(registry.New(tt.with...))
				defer server.Close()
				dir, digest := layoutOf(t, twoPlatforms(t))
				at := strings.TrimPrefix(server.URL, "http://") + "/team/small"
				pushed, err := Push(t.Context(), dir, Destination{Repository: at, Tag: "v1-ours"})
				if err != nil {
					t.Fatal(err)
				}
				if want := at + "@" + digest.String(); pushed.String() != want {
					t.Errorf("pushed %s, want %s", pushed, want)
				}
				tag, err := name.NewTag(at + ":v1-ours")
				if err != nil {
					t.Fatal(err)
				}
				index, err := remote.Index(tag)
				if err != nil {
					t.Fatal(err)
				}
				list, err := index.IndexManifest()
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range list.Manifests {
					if text := document(t, tag.Digest(m.Digest.String())); !strings.Contains(text, m.Platform.Architecture) {
						t.Errorf("what refers to the image for %s is %s", m.Platform, text)
					}
				}
			})
		}
	})
}

// document returns the one document that refers to an image.
func document(t *testing.T, image name.Digest) string {
	t.Helper()
	referrers, err := remote.Referrers(image)
	if err != nil {
		t.Fatal(err)
	}
	list, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 || list.Manifests[0].ArtifactType != kind {
		t.Fatalf("%s is referred to by %+v", image, list.Manifests)
	}
	artifact, err := remote.Image(image.Digest(list.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := artifact.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	blob, err := remote.Layer(image.Digest(manifest.Layers[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	in, err := blob.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

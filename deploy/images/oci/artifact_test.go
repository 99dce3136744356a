package oci

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestArtifact(t *testing.T) {
	t.Parallel()
	t.Run("a registry gives it out as it was written", func(t *testing.T) {
		t.Parallel()
		a := Artifact{Name: "team/charts/small:1.2.3", ConfigType: "application/vnd.cncf.helm.config.v1+json", Config: []byte(`{"name":"small"}`),
			ContentType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Content: []byte("packed"), Annotations: map[string]string{"a": "b"}}
		dir := filepath.Join(t.TempDir(), "small")
		digest, err := a.WriteLayout(dir)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := a.WriteLayout(dir); err != nil || again != digest {
			t.Errorf("written again it is %s, not %s: %v", again, digest, err)
		}
		server := httptest.NewServer(registry.New())
		defer server.Close()
		reference, err := Push(t.Context(), dir, Destination{Repository: strings.TrimPrefix(server.URL, "http://") + "/charts/small"})
		if err != nil {
			t.Fatal(err)
		}
		if reference.DigestStr() != digest.String() {
			t.Errorf("the registry has %s, and the layout %s", reference, digest)
		}
		got, err := remote.Image(reference.Context().Tag("1.2.3"))
		if err != nil {
			t.Fatal(err)
		}
		config, err := got.RawConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := got.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		have := []string{string(config), string(manifest.Config.MediaType), string(manifest.Layers[0].MediaType), manifest.Annotations["a"]}
		if diff := cmp.Diff([]string{string(a.Config), a.ConfigType, a.ContentType, "b"}, have); diff != "" {
			t.Errorf("(-written +pulled)\n%s", diff)
		}
	})
}

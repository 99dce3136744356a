package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/test/cluster/image"
)

func TestServeAnyName(t *testing.T) {
	t.Run("every name and tag is the image", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "standin")
		if err := os.WriteFile(program, []byte("#!/bin/true\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		n := &Node{APIServer: &APIServer{Dir: t.TempDir()}}
		folder, err := n.serveAnyName(image.Image{Name: "any:v1", Entrypoint: []string{"/standin"},
			Files: map[string]string{"/standin": program}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(folder, "_default", "hosts.toml"))
		if err != nil {
			t.Fatal(err)
		}
		host := regexp.MustCompile(`http://[^"]+`).FindString(string(text))
		get := func(path string) (int, []byte) {
			answer, err := http.Get(host + path)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			return answer.StatusCode, body
		}
		if code, _ := get("/v2/"); code != http.StatusOK {
			t.Errorf("it says %d where clients ask for a registry", code)
		}
		for _, picture := range []string{"library/python/manifests/latest", "vllm/vllm-openai/manifests/v0.8.5",
			"nvidia/cuda/manifests/12.9.1-base-ubuntu24.04", "a/b/c/manifests/manifests/blobs"} {
			_, text := get("/v2/" + picture)
			var manifest struct {
				Config struct{ Digest string }
				Layers []struct{ Digest string }
			}
			if err := json.Unmarshal(text, &manifest); err != nil || len(manifest.Layers) != 1 {
				t.Fatalf("%s: %s (%v)", picture, text, err)
			}
			if code, config := get("/v2/x/blobs/" + manifest.Config.Digest); code != http.StatusOK ||
				!strings.Contains(string(config), `"Entrypoint":["/standin"]`) {
				t.Errorf("%s: %d %s", picture, code, config)
			}
			if code, layer := get("/v2/x/blobs/" + manifest.Layers[0].Digest); code != http.StatusOK ||
				!bytes.Contains(layer, []byte("#!/bin/true")) {
				t.Errorf("%s: its layer is %d, %d bytes", picture, code, len(layer))
			}
		}
		for _, kind := range []string{"manifests", "blobs"} {
			if code, _ := get("/v2/x/" + kind + "/sha256:" + strings.Repeat("0", 64)); code != http.StatusNotFound {
				t.Errorf("of %s, one is there by a digest that is not its own: %d", kind, code)
			}
		}
	})
}

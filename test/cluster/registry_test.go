package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

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
		host := strings.TrimPrefix(regexp.MustCompile(`http://[^"]+`).FindString(string(text)), "http://")
		for _, image := range []string{"library/python", "vllm/vllm-openai:v0.8.5",
			"nvidia/cuda:12.9.1-base-ubuntu24.04", "a/b/c/manifests:blobs"} {
			at, err := name.ParseReference(host+"/"+image, name.Insecure)
			if err != nil {
				t.Fatal(err)
			}
			got, err := remote.Image(at)
			if err != nil {
				t.Fatalf("%s: %v", image, err)
			}
			config, err := got.ConfigFile()
			if err != nil || strings.Join(config.Config.Entrypoint, " ") != "/standin" {
				t.Errorf("%s: %+v (%v)", image, config, err)
			}
			layers, err := got.Layers()
			if err != nil || len(layers) == 0 {
				t.Fatalf("%s has %d layers (%v)", image, len(layers), err)
			}
			content, err := layers[0].Uncompressed()
			if err != nil {
				t.Fatalf("%s: %v", image, err)
			}
			content.Close()
		}
		unknown, err := name.ParseReference(host+"/x@sha256:"+strings.Repeat("0", 64), name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Image(unknown); err == nil {
			t.Error("an image is there by a digest that is not its own")
		}
	})
}

package main

import (
	"bytes"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
)

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("exit codes and messages", func(t *testing.T) {
		t.Parallel()
		empty := t.TempDir()
		for _, tt := range []struct {
			name string
			args string
			code int
			says string
		}{
			{"help", "", exitDone, "Exit codes:"},
			{"help of build", "build --help", exitDone, "--platform linux/amd64,linux/arm64"},
			{"help of push", "push --help", exitDone, "go run ./deploy/images push registry.example.com/gpuslice"},
			{"an unknown flag", "build --fast", exitUsage, "--fast (images build --help)"},
			{"a platform that there is none for", "build --platform windows/amd64", exitUsage, `platform "windows/amd64"`},
			{"an image that there is none of", "build --image scheduler", exitUsage,
				`there is no image "scheduler": there are webhook, guard, agent`},
			{"nowhere to push to", "push", exitUsage, "images push --help"},
			{"nothing to push", "push --from " + empty + " registry.example.com/x", exitFailed, "build them first"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				if code := run(t.Context(), strings.Fields(tt.args), &out, &out); code != tt.code || !strings.Contains(out.String(), tt.says) {
					t.Errorf("exit code %d, want %d, with %q:\n%s", code, tt.code, tt.says, out.String())
				}
			})
		}
	})
}

func TestPush(t *testing.T) {
	t.Parallel()
	t.Run("prints what an installation names", func(t *testing.T) {
		t.Parallel()
		layer, err := oci.Layer(map[string]oci.File{"/program": oci.Program([]byte("x"))}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		p := v1.Platform{OS: "linux", Architecture: "amd64"}
		image, err := oci.Image(oci.Config{Platform: p, Entrypoint: []string{"/program"}}, layer)
		if err != nil {
			t.Fatal(err)
		}
		from := t.TempDir()
		digest, err := (oci.Bundle{Name: "gpuslice/guard:v1", Images: []oci.Built{{Platform: p, Image: image}}}).WriteLayout(
			filepath.Join(from, "guard"))
		if err != nil {
			t.Fatal(err)
		}
		packed := oci.Artifact{Name: "gpuslice/charts/gpuslice:1.0.0",
			ConfigType: "application/vnd.cncf.helm.config.v1+json", Config: []byte("{}")}
		packedDigest, err := packed.WriteLayout(filepath.Join(from, "charts", "gpuslice"))
		if err != nil {
			t.Fatal(err)
		}
		signature, err := oci.Signature("gpuslice/guard", digest, func(text []byte) ([]byte, error) { return text[:1], nil })
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signature.WriteLayout(filepath.Join(from, "guard"+oci.SignatureSuffix))
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(registry.New())
		defer server.Close()
		at := strings.TrimPrefix(server.URL, "http://") + "/team"
		var out, said bytes.Buffer
		if code := run(t.Context(), []string{"push", "--from", from, at}, &out, &said); code != exitDone {
			t.Fatalf("exit code %d\n%s", code, said.String())
		}
		if want := at + "/guard@" + digest.String() + "\n" + at + "/charts/gpuslice@" + packedDigest.String() + "\n"; out.String() != want {
			t.Errorf("printed %q, want %q", out.String(), want)
		}
		tag, err := name.NewTag(at + "/guard:sha256-" + digest.Hex + ".sig")
		if err != nil {
			t.Fatal(err)
		}
		if found, err := remote.Head(tag); err != nil || found.Digest != signed {
			t.Errorf("the image's signature is %v, want %s: %v", found, signed, err)
		}
	})
}

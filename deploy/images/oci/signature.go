package oci

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// SignatureSuffix ends the folder of a signature's layout, beside the layout that it is of.
const SignatureSuffix = ".sig"

// Signature is the artifact that `cosign verify` looks for beside an image: it has the tag sha256-DIGEST.sig in its
// repository. sign signs a text.
func Signature(repository string, digest v1.Hash, sign func(text []byte) ([]byte, error)) (Artifact, error) {
	var payload struct {
		Critical struct {
			Identity struct {
				Reference string `json:"docker-reference"`
			} `json:"identity"`
			Image struct {
				Digest v1.Hash `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
		Optional map[string]any `json:"optional"`
	}
	payload.Critical.Identity.Reference, payload.Critical.Image.Digest, payload.Critical.Type =
		repository, digest, "cosign container image signature"
	text, err := json.Marshal(payload)
	if err != nil {
		return Artifact{}, fmt.Errorf("write what is signed: %w", err)
	}
	signature, err := sign(text)
	if err != nil {
		return Artifact{}, fmt.Errorf("sign %s: %w", digest, err)
	}
	content, _, err := v1.SHA256(strings.NewReader(string(text)))
	if err != nil {
		return Artifact{}, fmt.Errorf("sign %s: %w", digest, err)
	}
	config, err := json.Marshal(v1.ConfigFile{RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{content}}})
	if err != nil {
		return Artifact{}, fmt.Errorf("sign %s: %w", digest, err)
	}
	return Artifact{
		Name:       repository + ":" + digest.Algorithm + "-" + digest.Hex + SignatureSuffix,
		ConfigType: "application/vnd.oci.image.config.v1+json", Config: config,
		ContentType: "application/vnd.dev.cosign.simplesigning.v1+json", Content: text,
		ContentAnnotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)},
	}, nil
}

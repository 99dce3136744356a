package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
)

// keyFile writes a key as PEM.
func keyFile(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key.pem")
	if err == nil {
		err = os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// pkcs8 writes a key as openssl does today.
func pkcs8(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return keyFile(t, "PRIVATE KEY", der, err)
}

func edKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// openssl verifies a release's signature with the commands of README.md.
func openssl(t *testing.T, dir string) error {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("verifies with openssl, which is not installed")
	}
	cmd := exec.Command("openssl", "dgst", "-sha256", "-verify", "gpuslice.pub", "-signature", "SHA256SUMS.sig", "SHA256SUMS")
	if public, err := os.ReadFile(filepath.Join(dir, "gpuslice.pub")); err != nil || len(public) < 150 { // Ed25519's is short
		cmd = exec.Command("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "gpuslice.pub", "-rawin",
			"-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig")
	}
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("%s", out)
	}
	return err
}

func TestSignature(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		key  func(t *testing.T) string
	}{
		{"ECDSA", func(t *testing.T) string { return pkcs8(t, ecKey(t)) }},
		{"ECDSA in its older format", func(t *testing.T) string {
			der, err := x509.MarshalECPrivateKey(ecKey(t))
			return keyFile(t, "EC PRIVATE KEY", der, err)
		}},
		{"Ed25519", func(t *testing.T) string { return pkcs8(t, edKey(t)) }},
	} {
		t.Run(tt.name+" is verified by openssl", func(t *testing.T) {
			t.Parallel()
			s, err := newSigner(tt.key(t))
			if err != nil {
				t.Fatal(err)
			}
			w := &work{dir: t.TempDir(), signer: s}
			text := []byte("00  a\n")
			if err := w.write(sumsFile, text); err != nil {
				t.Fatal(err)
			}
			if err := w.writeSignature(t.Context()); err != nil {
				t.Fatal(err)
			}
			first, err := s.sign(text)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := s.sign(text); err != nil || !bytes.Equal(first, again) {
				t.Errorf("the same text has two signatures: %v", err)
			}
			if err := openssl(t, w.dir); err != nil {
				t.Errorf("not verified: %v", err)
			}
			if err := w.write(sumsFile, []byte("11  a\n")); err != nil {
				t.Fatal(err)
			}
			if openssl(t, w.dir) == nil {
				t.Error("another text is verified too")
			}
		})
	}
}

func TestSigner(t *testing.T) {
	t.Parallel()
	t.Run("no key signs nothing", func(t *testing.T) {
		t.Parallel()
		if s, err := newSigner(""); s != nil || err != nil {
			t.Errorf("%v, %v", s, err)
		}
	})
	t.Run("a key with a password is for another program", func(t *testing.T) {
		t.Parallel()
		_, err := newSigner(keyFile(t, "ENCRYPTED SIGSTORE PRIVATE KEY", []byte("x"), nil))
		if err == nil || !strings.Contains(err.Error(), "cosign sign-blob") {
			t.Errorf("%v", err)
		}
	})
}

// verifyImage does what cosign does: it finds the signature of what a digest names by its tag, and holds it against the key and the digest.
func verifyImage(reference, public string) error {
	digest, err := name.NewDigest(reference)
	if err != nil {
		return err
	}
	image, err := remote.Image(digest.Context().Tag(strings.Replace(digest.DigestStr(), ":", "-", 1) + ".sig"))
	if err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != "application/vnd.dev.cosign.simplesigning.v1+json" {
		return fmt.Errorf("its layers are %v", manifest.Layers)
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	var signed struct {
		Critical struct {
			Image map[string]string
			Type  string
		}
	}
	if err := json.Unmarshal(text, &signed); err != nil {
		return err
	}
	if signed.Critical.Image["docker-manifest-digest"] != digest.DigestStr() || signed.Critical.Type != "cosign container image signature" {
		return fmt.Errorf("it is of %s", text)
	}
	signature, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		return err
	}
	block, _ := pem.Decode([]byte(public))
	if block == nil {
		return errors.New("the public key is not PEM")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if ecdsa.VerifyASN1(key, sum[:], signature) {
			return nil
		}
	case ed25519.PublicKey:
		if ed25519.Verify(key, text, signature) {
			return nil
		}
	}
	return errors.New("another key signed it, or another text")
}

// TestImageSignatures: what is pushed beside images and chart is verified by their digests, and by no other key.
func TestImageSignatures(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	for _, tt := range []struct {
		name string
		key  any
	}{{"ecdsa", ecKey(t)}, {"ed25519", edKey(t)}} {
		s, err := newSigner(pkcs8(t, tt.key))
		if err != nil {
			t.Fatal(err)
		}
		repository := strings.TrimPrefix(server.URL, "http://") + "/team/" + tt.name
		digest := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0a", 32)}
		signature, err := oci.Signature(repository, digest, s.sign)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "sig")
		if _, err := signature.WriteLayout(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := oci.Push(t.Context(), dir, oci.Destination{Repository: repository}); err != nil {
			t.Fatal(err)
		}
		for who, c := range map[string]struct {
			signer *signer
			good   bool
		}{"its key": {s, true}, "another": {&signer{ecKey(t)}, false}} {
			der, err := x509.MarshalPKIXPublicKey(c.signer.Public())
			if err != nil {
				t.Fatal(err)
			}
			public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
			if err := verifyImage(repository+"@"+digest.String(), public); (err == nil) != c.good {
				t.Errorf("%s, %s: %v", tt.name, who, err)
			}
		}
	}
}

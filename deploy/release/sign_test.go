package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
		cmd = exec.Command("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "gpuslice.pub", "-rawin", "-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig")
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

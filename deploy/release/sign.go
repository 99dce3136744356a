package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
)

// signer signs with a key from a file.
type signer struct{ crypto.Signer }

// newSigner reads an unencrypted key. It returns nil where there is none to read.
func newSigner(path string) (*signer, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("read key %s: it is not PEM", path)
	}
	key, err := privateKey(block)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", path, err)
	}
	return &signer{key}, nil
}

func privateKey(block *pem.Block) (crypto.Signer, error) {
	switch block.Type {
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		switch key := key.(type) {
		case *ecdsa.PrivateKey:
			return key, nil
		case ed25519.PrivateKey:
			return key, nil
		}
		return nil, fmt.Errorf("it is a %T, and must be ECDSA or Ed25519", key)
	}
	return nil, fmt.Errorf("it is %q: only keys without a password are read. Sign with the program that knows it, "+
		"for example: cosign sign-blob --key KEY --output-signature SHA256SUMS.sig SHA256SUMS", block.Type)
}

// sign returns the signature that openssl and cosign verify. The same text gives the same signature.
func (s *signer) sign(text []byte) ([]byte, error) {
	if _, ok := s.Public().(ed25519.PublicKey); ok {
		return s.Sign(nil, text, crypto.Hash(0))
	}
	digest := sha256.Sum256(text)
	return s.Sign(nil, digest[:], crypto.SHA256) // without randomness, it is that of RFC 6979
}

// writeSignature signs the checksums, and so all that they are of.
func (w *work) writeSignature(context.Context) error {
	text, err := os.ReadFile(filepath.Join(w.dir, sumsFile))
	if err != nil {
		return fmt.Errorf("read checksums: %w", err)
	}
	signature, err := w.signer.sign(text)
	if err != nil {
		return fmt.Errorf("sign checksums: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(w.signer.Public())
	if err != nil {
		return fmt.Errorf("write public key: %w", err)
	}
	return errors.Join(w.write(sumsFile+".sig", signature),
		w.write("gpuslice.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
}

// writeSignatures signs the checksums, and the objects for the registry.
func (w *work) writeSignatures(ctx context.Context) error {
	digests := map[string]v1.Hash{chartPath: w.chart}
	maps.Copy(digests, w.digests())
	for part, digest := range digests {
		signature, err := oci.Signature(w.Repository+"/"+part, digest, w.signer.sign)
		if err != nil {
			return err
		}
		if _, err := signature.WriteLayout(filepath.Join(w.dir, "oci", filepath.FromSlash(part)) + oci.SignatureSuffix); err != nil {
			return err
		}
	}
	return w.writeSignature(ctx)
}

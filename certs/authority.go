package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// skew is how long ago certificates begin to be valid: clocks differ.
const skew = time.Hour

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// signer is a certificate authority with its key.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newSigner makes an authority that lasts that long.
func newSigner(now time.Time, life time.Duration) (*signer, error) {
	made, key, err := sign(nil, &x509.Certificate{
		Subject: pkix.Name{CommonName: "gpuslice webhook authority"}, NotBefore: now.Add(-skew), NotAfter: now.Add(life),
		IsCA: true, MaxPathLenZero: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	if err != nil {
		return nil, fmt.Errorf("make authority: %w", err)
	}
	return &signer{made, key}, nil
}

// sign makes a certificate with a key of its own. Without a signer that key signs it.
func sign(by *signer, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if by == nil {
		by = &signer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return nil, nil, err
	}
	made, err := x509.ParseCertificate(der)
	return made, key, err
}

// decodeSigner finds the authority of the bundle that a key belongs to.
func decodeSigner(b bundle, key []byte) (*signer, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	signing, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, not an ECDSA key", parsed)
	}
	for _, t := range b {
		if signing.PublicKey.Equal(t.certificate.PublicKey) {
			return &signer{t.certificate, signing}, nil
		}
	}
	return nil, errors.New("no unexpired certificate belongs to the key")
}

// encodeKey prints the key.
func (s *signer) encodeKey() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

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
	"math/big"
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	template, err := certificate("gpuslice webhook authority", now, now.Add(life))
	if err != nil {
		return nil, err
	}
	template.IsCA, template.MaxPathLenZero, template.BasicConstraintsValid = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority: %w", err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read own authority: %w", err)
	}
	return &signer{made, key}, nil
}

// certificate holds the common fields of authorities and leaves.
func certificate(name string, now, end time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choose serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: end,
	}, nil
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

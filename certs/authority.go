package certs

import (
	"bytes"
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

// Lifetimes. Leaves live in memory, so a short life costs nothing.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 7 * 24 * time.Hour
	skew          = time.Hour // certificates are valid from that long ago: clocks differ
)

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// authority is a certificate authority: one key that signs, and every certificate that is to be trusted. While one
// authority follows another both certificates are in the bundle.
type authority struct {
	signer *x509.Certificate
	key    *ecdsa.PrivateKey
	bundle []*x509.Certificate // unexpired, the signer among them
}

// newAuthority makes an authority that goes on trusting older certificates.
func newAuthority(now time.Time, older []*x509.Certificate) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	template, err := certificate("gpuslice webhook authority", now, now.Add(authorityLife))
	if err != nil {
		return nil, err
	}
	template.IsCA, template.MaxPathLenZero, template.BasicConstraintsValid = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority: %w", err)
	}
	signer, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read own authority: %w", err)
	}
	return &authority{signer: signer, key: key, bundle: append([]*x509.Certificate{signer}, older...)}, nil
}

// certificate is what authorities and leaves have in common.
func certificate(name string, now, end time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choose serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: end,
	}, nil
}

// decodeAuthority reads an authority. The signer is the unexpired certificate that belongs to the key; without one the
// error still comes with an authority whose bundle holds what is to be trusted on.
func decodeAuthority(certificates, key []byte, now time.Time) (*authority, error) {
	a := &authority{}
	for block, rest := pem.Decode(certificates); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && c.IsCA && now.Before(c.NotAfter) {
			a.bundle = append(a.bundle, c)
		}
	}
	block, _ := pem.Decode(key)
	if block == nil {
		return a, errors.New("the key is no PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return a, fmt.Errorf("read key: %w", err)
	}
	signing, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return a, fmt.Errorf("the key is a %T, not an ECDSA key", parsed)
	}
	for _, c := range a.bundle {
		if signing.PublicKey.Equal(c.PublicKey) {
			a.signer, a.key = c, signing
			return a, nil
		}
	}
	return a, errors.New("no unexpired certificate belongs to the key")
}

// encodeKey prints the signing key.
func (a *authority) encodeKey() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

// encodeBundle prints the certificates to trust.
func (a *authority) encodeBundle() []byte {
	var b bytes.Buffer
	for _, c := range a.bundle {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw}))
	}
	return b.Bytes()
}

// endsBefore says that the signer will not last until then.
func (a *authority) endsBefore(then time.Time) bool { return a.signer.NotAfter.Before(then) }

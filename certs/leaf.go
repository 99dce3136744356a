package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"
)

// issue signs a leaf for names, which are DNS names or IP addresses. Its key never leaves the process.
func (a *authority) issue(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	end := now.Add(leafLife)
	if a.endsBefore(end) {
		end = a.signer.NotAfter
	}
	template, err := certificate("gpuslice-webhook", now, end)
	if err != nil {
		return nil, err
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.signer, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign leaf: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read own leaf: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// current says that a leaf of this authority need not be replaced yet: a third of its life is left.
func (a *authority) current(leaf *tls.Certificate, now time.Time) bool {
	if leaf == nil || leaf.Leaf.CheckSignatureFrom(a.signer) != nil {
		return false
	}
	life := leaf.Leaf.NotAfter.Sub(leaf.Leaf.NotBefore)
	return now.Before(leaf.Leaf.NotAfter.Add(-life / 3))
}

// trusted says why a caller that trusts bundle and calls host would not accept the leaf: nil when it would.
func trusted(leaf *x509.Certificate, bundle []byte, host string, now time.Time) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("its caBundle holds no certificate")
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

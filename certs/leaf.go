package certs

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"time"
)

// issue signs a leaf for names, which are DNS names or IP addresses. It lasts as long as life and the authority allow; its
// key never leaves the process.
func (s *signer) issue(names []string, now time.Time, life time.Duration) (*tls.Certificate, error) {
	end := now.Add(life)
	if s.certificate.NotAfter.Before(end) {
		end = s.certificate.NotAfter
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "gpuslice-webhook"}, NotBefore: now.Add(-skew), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	leaf, key, err := sign(s, template)
	if err != nil {
		return nil, fmt.Errorf("sign leaf: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// current reports whether a leaf of this authority need not be replaced yet: a third of its life is left.
func (s *signer) current(leaf *tls.Certificate, now time.Time, life time.Duration) bool {
	return leaf != nil && leaf.Leaf.CheckSignatureFrom(s.certificate) == nil && now.Before(leaf.Leaf.NotAfter.Add(-life/3))
}

// accepts returns why a caller that trusts bundle and calls host would not accept the certificate: nil when it would. The
// time is when the authority expires by which it does.
func accepts(bundle []byte, host string, served *tls.Certificate, now time.Time) (time.Time, error) {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return time.Time{}, fmt.Errorf("its caBundle holds no certificate")
	}
	for _, der := range served.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	chains, err := served.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, DNSName: host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return time.Time{}, err
	}
	ends := make([]time.Time, 0, len(chains))
	for _, chain := range chains {
		ends = append(ends, chain[len(chain)-1].NotAfter)
	}
	return slices.MaxFunc(ends, time.Time.Compare), nil
}

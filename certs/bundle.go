package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"time"
)

// trusted is an authority that API servers are to trust.
type trusted struct {
	certificate *x509.Certificate
	until       time.Time // no leaf of it is served later than that; zero: as long as the certificate itself lasts
}

// bundle is every authority that is to be trusted.
type bundle []trusted

// with adds an authority. One that is there already is trusted until the later time.
func (b bundle) with(certificate *x509.Certificate, until time.Time) bundle {
	out := append(bundle(nil), b...)
	for i, t := range out {
		if t.certificate.Equal(certificate) {
			if !t.until.IsZero() && t.until.Before(until) {
				out[i].until = until
			}
			return out
		}
	}
	return append(out, trusted{certificate, until})
}

// retire bounds until when an authority is trusted.
func (b bundle) retire(certificate *x509.Certificate, until time.Time) bundle {
	out := append(bundle(nil), b...)
	for i, t := range out {
		if t.certificate.Equal(certificate) && (t.until.IsZero() || until.Before(t.until)) {
			out[i].until = until
		}
	}
	return out
}

// at returns the authorities that are still to be trusted.
func (b bundle) at(now time.Time) bundle {
	var out bundle
	for _, t := range b {
		if now.Before(t.certificate.NotAfter) && (t.until.IsZero() || now.Before(t.until)) {
			out = append(out, t)
		}
	}
	return out
}

func (b bundle) contains(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(b, func(t trusted) bool { return t.certificate.Equal(certificate) })
}

// encode prints the certificates, for caBundle.
func (b bundle) encode() []byte {
	var out bytes.Buffer
	for _, t := range b {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: t.certificate.Raw}))
	}
	return out.Bytes()
}

// deadlines are the times that certificates do not hold themselves, by fingerprint.
func (b bundle) deadlines() map[string]time.Time {
	out := map[string]time.Time{}
	for _, t := range b {
		if !t.until.IsZero() {
			out[fingerprint(t.certificate)] = t.until
		}
	}
	return out
}

// decodeBundle reads the results of encode and deadlines. Anything but certificates of authorities is left out.
func decodeBundle(text []byte, deadlines map[string]time.Time) bundle {
	var out bundle
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && c.IsCA && !out.contains(c) {
			out = append(out, trusted{c, deadlines[fingerprint(c)]})
		}
	}
	return out
}

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of certificates: longer than any test, short enough to be harmless.
const lifetime = 30 * 24 * time.Hour

// pki issues the certificates of one cluster into its folder, as NAME.crt and NAME.key.
type pki struct {
	dir string
	pem []byte // the authority's certificate
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

// newPKI makes dir and a certificate authority named ca in it.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder for certificates: %w", err)
	}
	p := &pki{dir: dir}
	cert, key, err := p.issue("ca", &x509.Certificate{
		Subject: pkix.Name{CommonName: "gpuslice-test-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	})
	if err != nil {
		return nil, err
	}
	p.ca, p.key = cert, key
	p.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	return p, nil
}

// server issues a serving certificate for the given DNS names and IP addresses.
func (p *pki) server(name string, hosts ...string) error {
	t := &x509.Certificate{Subject: pkix.Name{CommonName: name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	_, _, err := p.issue(name, t)
	return err
}

// client issues a certificate by which the API server knows a user and one group.
func (p *pki) client(name, user, group string) error {
	_, _, err := p.issue(name, &x509.Certificate{Subject: pkix.Name{CommonName: user, Organization: []string{group}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// issue signs t with the authority, or with itself while there is none.
func (p *pki) issue(name string, t *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := p.keyPair(name)
	if err != nil {
		return nil, nil, err
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, fmt.Errorf("draw serial number: %w", err)
	}
	t.NotBefore, t.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(lifetime)
	parent, signer := p.ca, p.key
	if parent == nil {
		parent, signer = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate %s: %w", name, err)
	}
	if err := p.write(name+".crt", "CERTIFICATE", der); err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("read back certificate %s: %w", name, err)
	}
	return cert, key, nil
}

// keyPair writes a new key as NAME.key and its public half as NAME.pub.
func (p *pki) keyPair(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key %s: %w", name, err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key %s: %w", name, err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("encode public key %s: %w", name, err)
	}
	if err := p.write(name+".key", "EC PRIVATE KEY", private); err != nil {
		return nil, err
	}
	return key, p.write(name+".pub", "PUBLIC KEY", public)
}

func (p *pki) write(name, kind string, der []byte) error {
	if err := os.WriteFile(p.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// randomToken returns a bearer token nobody can guess.
func randomToken() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b)
}

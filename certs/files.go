package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Files is a Source of a certificate and key that somebody else keeps on disk, such as a mounted Secret. Changes are
// picked up within seconds.
type Files struct {
	watcher        *certwatcher.CertWatcher
	configurations Configurations
	problem        atomic.Pointer[error]
}

// FromFiles reads the certificate and key once, and fails where they are no pair.
func FromFiles(certificate, key string, configurations Configurations) (*Files, error) {
	watcher, err := certwatcher.New(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s: %w", certificate, err)
	}
	f := &Files{watcher: watcher, configurations: configurations}
	f.keep(errors.New("not verified against the webhook configurations yet"))
	return f, nil
}

// Start implements Source.
func (f *Files) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching := make(chan error, 1)
	go func() {
		defer cancel()
		watching <- f.watcher.Start(ctx)
	}()
	repeat(ctx, f.check)
	return <-watching
}

// check holds the certificate against the live configurations.
func (f *Files) check(ctx context.Context) error {
	live, err := f.configurations.read(ctx)
	if err == nil {
		err = verify(live, f.leaf(), time.Now())
	}
	if verified := *f.problem.Load() == nil; !verified || !errors.Is(err, errUnread) {
		f.keep(err)
	}
	return err
}

func (f *Files) keep(err error) { f.problem.Store(&err) }

// leaf is the certificate that is served.
func (f *Files) leaf() *x509.Certificate {
	c, err := f.watcher.GetCertificate(nil)
	if err != nil || c == nil || c.Leaf == nil {
		return &x509.Certificate{}
	}
	return c.Leaf
}

// GetCertificate implements Source.
func (f *Files) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.watcher.GetCertificate(hello)
}

// Ready implements Source.
func (f *Files) Ready() error {
	if !time.Now().Before(f.leaf().NotAfter) {
		return errors.New("the certificate has expired")
	}
	return *f.problem.Load()
}

// Expiry implements Source.
func (f *Files) Expiry() time.Time { return f.leaf().NotAfter }

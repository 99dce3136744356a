package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"time"
)

// Source provides the serving certificate.
type Source interface {
	// Start keeps the certificate current until ctx ends. An error means that it cannot go on at all.
	Start(ctx context.Context) error
	// GetCertificate returns the certificate to serve, for tls.Config.
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Ready says why the certificate should not be served: nil when the API server will trust it.
	Ready() error
	// Expiry is when the certificate that is served expires; zero while there is none.
	Expiry() time.Time
}

// Timing of a Source. Clocks are read anew at each check, since a machine may have been suspended in between.
const (
	checkEvery = 20 * time.Second
	retryEvery = 2 * time.Second // after a check that failed
	checkWait  = 15 * time.Second
)

// errUnread marks a check that could not be made, since the API server did not answer. What was verified before stands:
// else one slow answer would take every replica out of service at once, and pods would pass as they are.
var errUnread = errors.New("not read")

// repeat runs check until ctx ends: again after checkEvery, or after retryEvery where it failed.
func repeat(ctx context.Context, check func(context.Context) error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, checkWait)
		err := check(bounded)
		cancel()
		pause := checkEvery
		if err != nil {
			pause = retryEvery
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

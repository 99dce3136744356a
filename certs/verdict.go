package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// staleAfter is how long a verdict stands without another look: longer than one interval and two slow checks take. A
// process that was suspended has an older one when it wakes.
const staleAfter = checkEvery + 2*checkWait + 25*time.Second

// verdict is the certificate that is served, and what was found of it.
type verdict struct {
	log logr.Logger

	mu      sync.RWMutex
	leaf    *tls.Certificate
	problem error     // nil: every live configuration accepts the leaf
	checked time.Time // when the last look began
	said    string
}

func newVerdict(log logr.Logger) *verdict {
	return &verdict{log: log, problem: errors.New("not verified against the webhook configurations yet")}
}

// serving is the certificate that is served; nil while there is none.
func (v *verdict) serving() *tls.Certificate {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.leaf
}

func (v *verdict) serve(leaf *tls.Certificate) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leaf = leaf
}

// record keeps what a look found that began then, and logs what changed. A look that found nothing, for the reason that
// err gives, leaves a good verdict standing, unless that is stale: one slow answer of the API server would else take every
// replica out of service at once, and pods would pass as they are. It returns what went wrong altogether.
func (v *verdict) record(ctx context.Context, begun time.Time, found *finding, err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	fresh := begun.Sub(v.checked) < staleAfter
	v.checked = begun
	all := errors.Join(found.err(), err)
	v.say(ctx, all)
	switch {
	case found != nil:
		if v.problem != nil && found.err() == nil {
			v.log.Info("certificate ready")
		}
		v.problem = found.err()
	case v.problem != nil || !fresh:
		v.problem = err
	}
	return all
}

// say logs what was not wrong the last time.
func (v *verdict) say(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != v.said && ctx.Err() == nil {
		v.log.Error(err, "certificate check failed")
	}
	v.said = text
}

// GetCertificate implements Source.
func (v *verdict) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.leaf == nil {
		return nil, fmt.Errorf("serve: %w", v.problem)
	}
	return v.leaf, nil
}

// Ready implements Source.
func (v *verdict) Ready() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	at := wallClock()
	switch {
	case v.problem != nil:
		return v.problem
	case !at.Before(v.leaf.Leaf.NotAfter):
		return fmt.Errorf("the certificate expired at %s", v.leaf.Leaf.NotAfter.Format(time.RFC3339))
	case at.Sub(v.checked) >= staleAfter:
		return fmt.Errorf("the certificate was last checked at %s: this process or its machine stood still", v.checked.Format(time.RFC3339))
	}
	return nil
}

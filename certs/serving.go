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

// staleAfter is how long the result of a check counts: longer than one interval and two slow checks take. A process that
// was suspended has an older one when it wakes.
const staleAfter = checkPeriod + 2*checkTimeout + 25*time.Second

// serving is the served certificate, and the result of the last check.
type serving struct {
	log logr.Logger

	mu      sync.RWMutex
	leaf    *tls.Certificate
	problem error     // nil: every live configuration accepts the leaf
	checked time.Time // when the last check began
	logged  string    // the last problem
}

func newServing(log logr.Logger) *serving {
	return &serving{log: log, problem: errors.New("not verified against the webhook configurations yet")}
}

// served is the certificate that is served; nil while there is none.
func (s *serving) served() *tls.Certificate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.leaf
}

func (s *serving) serve(leaf *tls.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaf = leaf
}

// record keeps the result of a check that began then, and logs changes. A check that could not be made, for the reason
// that err gives, keeps a good result, unless that is stale: one slow answer of the API server would otherwise take
// every replica out of service at once, and pods would be admitted as they are. It returns all that went wrong.
func (s *serving) record(ctx context.Context, begun time.Time, found *finding, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := begun.Sub(s.checked) < staleAfter
	s.checked = begun
	all := errors.Join(found.err(), err)
	s.logNew(ctx, all)
	switch {
	case found != nil:
		if s.problem != nil && found.err() == nil {
			s.log.Info("certificate ready")
		}
		s.problem = found.err()
	case s.problem != nil || !fresh:
		s.problem = err
	}
	return all
}

// logNew logs problems that are new since the last time.
func (s *serving) logNew(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != s.logged && ctx.Err() == nil {
		s.log.Error(err, "certificate check failed")
	}
	s.logged = text
}

// GetCertificate implements Source.
func (s *serving) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.leaf == nil {
		return nil, fmt.Errorf("serve: %w", s.problem)
	}
	return s.leaf, nil
}

// Ready implements Source.
func (s *serving) Ready() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at := wallClock()
	switch {
	case s.problem != nil:
		return s.problem
	case !at.Before(s.leaf.Leaf.NotAfter):
		return fmt.Errorf("the certificate expired at %s", s.leaf.Leaf.NotAfter.Format(time.RFC3339))
	case at.Sub(s.checked) >= staleAfter:
		return fmt.Errorf("the certificate was last checked at %s: this process or its machine stood still", s.checked.Format(time.RFC3339))
	}
	return nil
}

// finding is the result of checking a certificate against the live configurations; nil: it could not be checked.
type finding struct {
	rejections []error   // entries that would not accept it
	ends       time.Time // when the first authority expires by which one does; zero: nobody calls
}

func (f *finding) err() error {
	if f == nil || len(f.rejections) == 0 {
		return nil
	}
	return fmt.Errorf("the API server would not accept the certificate: %w", errors.Join(f.rejections...))
}

// verify checks a certificate against every entry. Without one there is nothing to find.
func verify(live []configuration, served *tls.Certificate, now time.Time) *finding {
	if served == nil {
		return nil
	}
	f := &finding{}
	for _, one := range live {
		for _, h := range one.hooks {
			end, err := accepts(h.bundle, h.host, served, now)
			if err != nil {
				f.rejections = append(f.rejections, fmt.Errorf("webhook %s of %s: %w", h.name, one.name, err))
			} else if f.ends.IsZero() || end.Before(f.ends) {
				f.ends = end
			}
		}
	}
	return f
}

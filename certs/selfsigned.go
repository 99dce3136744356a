package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
)

// SelfSignedOptions say where the authority is kept and whom its leaves are for.
type SelfSignedOptions struct {
	Client    kubernetes.Interface
	Namespace string
	Secret    string
	// Names are the DNS names and IP addresses under which the API server calls, each in every leaf.
	Names          []string
	Configurations Configurations
	Log            logr.Logger
}

// SelfSigned is a Source with an authority of its own. Replicas share the authority through a Secret; each has a leaf
// of its own in memory.
type SelfSigned struct {
	options SelfSignedOptions

	mu        sync.RWMutex
	leaf      *tls.Certificate
	problem   error
	authority *authority // as last read; puts a lost Secret back
}

// NewSelfSigned prepares the source; Start does the work.
func NewSelfSigned(options SelfSignedOptions) *SelfSigned {
	return &SelfSigned{options: options, problem: errors.New("no certificate yet")}
}

// Start implements Source. What fails is tried again; Ready says why meanwhile.
func (s *SelfSigned) Start(ctx context.Context) error {
	repeat(ctx, func(ctx context.Context) error {
		err := s.check(ctx, time.Now())
		s.report(ctx, err)
		return err
	})
	return nil
}

// check brings authority, bundle and leaf up to date, in this order: a leaf must not be served before it is trusted.
func (s *SelfSigned) check(ctx context.Context, now time.Time) error {
	authority, err := s.shared(ctx, now)
	if err != nil {
		return err
	}
	live, healed, err := s.options.Configurations.heal(ctx, authority.encodeBundle())
	if err != nil {
		return err
	}
	if healed > 0 {
		s.options.Log.Info("caBundle written", "webhooks", healed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.authority = authority
	if !authority.current(s.leaf, now) {
		leaf, err := authority.issue(s.options.Names, now)
		if err != nil {
			return err
		}
		s.leaf = leaf
		s.options.Log.Info("certificate issued", "names", s.options.Names, "expires", leaf.Leaf.NotAfter)
	}
	return verify(live, s.leaf.Leaf, now)
}

// report keeps the outcome of a check, and logs it where it changed.
func (s *SelfSigned) report(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && ctx.Err() == nil && (s.problem == nil || s.problem.Error() != err.Error()) {
		s.options.Log.Error(err, "certificate not ready")
	}
	if s.problem == nil && errors.Is(err, errUnread) {
		return
	}
	if err == nil && s.problem != nil {
		s.options.Log.Info("certificate ready")
	}
	s.problem = err
}

// GetCertificate implements Source.
func (s *SelfSigned) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.leaf == nil {
		return nil, fmt.Errorf("serve: %w", s.problem)
	}
	return s.leaf, nil
}

// Ready implements Source.
func (s *SelfSigned) Ready() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.problem == nil && !time.Now().Before(s.leaf.Leaf.NotAfter) {
		return errors.New("the certificate has expired")
	}
	return s.problem
}

// Expiry implements Source.
func (s *SelfSigned) Expiry() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.leaf == nil {
		return time.Time{}
	}
	return s.leaf.Leaf.NotAfter
}

package certs

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
)

// SelfSignedOptions say where the authority is kept and whom its leaves are for.
type SelfSignedOptions struct {
	Secret SharedSecret
	// Names are the DNS names and IP addresses under which the API server calls, each in every leaf.
	Names          []string
	Configurations Configurations
	Lifetimes      Lifetimes
	Metrics        *Metrics
	Log            logr.Logger
}

// SelfSigned is a Source with an authority of its own. Replicas share the authority through a Secret; each has a leaf
// of its own in memory.
type SelfSigned struct {
	*serving
	options  SelfSignedOptions
	lastRead *authority // restores a lost Secret
}

// NewSelfSigned prepares the source; Start does the work.
func NewSelfSigned(options SelfSignedOptions) *SelfSigned {
	return &SelfSigned{serving: newServing(options.Log), options: options}
}

// Start implements Source. Failed steps are retried; Ready returns the reason meanwhile.
func (s *SelfSigned) Start(ctx context.Context) error {
	// Twenty checks in a leaf's life, so that lives of seconds, which tests have, are kept too.
	keepChecking(ctx, s.options.Configurations, s.options.Secret, min(checkPeriod, s.options.Lifetimes.Leaf/20), s.check)
	return nil
}

// check verifies the certificate, again if another writer was faster, and records the result.
func (s *SelfSigned) check(ctx context.Context, now time.Time) error {
	found, err := s.reconcile(ctx, now)
	for try := 1; errors.Is(err, errConflict) && try < maxTries; try++ {
		found, err = s.reconcile(ctx, now)
	}
	return s.record(ctx, now, found, err)
}

// reconcile brings authority, bundle and leaf up to date, in this order: a leaf must not be served before it is trusted. The
// configurations are read before the Secret, and written only at the version that was read: a process that was suspended
// in between cannot put an old bundle over a newer one.
func (s *SelfSigned) reconcile(ctx context.Context, now time.Time) (*finding, error) {
	live, err := s.options.Configurations.read(ctx)
	if err != nil {
		return nil, err
	}
	before := verify(live, s.served(), now)
	s.options.Metrics.mismatched(before)
	authority, err := s.shared(ctx, now, live)
	if err != nil {
		return before, err
	}
	healed, err := s.options.Configurations.heal(ctx, live, authority.bundle.at(now).encode())
	if errors.Is(err, errConflict) {
		return nil, err
	} else if err != nil {
		return before, err
	}
	if healed > 0 {
		s.options.Log.Info("caBundle written", "webhooks", healed)
		if live, err = s.options.Configurations.read(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.renew(authority, now); err != nil {
		return before, err
	}
	after := verify(live, s.served(), now)
	s.options.Metrics.observe(s.served(), after)
	return after, nil
}

// shared returns the authority of the Secret, one step further where a step is due. A Secret that is missing or of no use
// is written: with the authority that this replica last read, so that every leaf stays valid, else with a new one. Whichever
// replica writes first decides.
func (s *SelfSigned) shared(ctx context.Context, now time.Time, live []configuration) (*authority, error) {
	var agreed *authority
	var changed bool
	wrote, err := s.options.Secret.agree(ctx, func(c *content) (err error) {
		found, unusable := decodeAuthority(c.data, now)
		if unusable != nil {
			agreed, err = s.replacement(now, found.bundle)
			changed = true
		} else {
			_, rotate := c.annotations[AnnotationRotate]
			agreed, changed, err = found.step(now, s.options.Lifetimes, live, rotate)
			delete(c.annotations, AnnotationRotate)
		}
		if err == nil && changed {
			c.data, err = agreed.encode()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if wrote {
		s.options.Log.Info("authority written", "secret", s.options.Secret.Name, "trusted", len(agreed.bundle), "rotating", agreed.next != nil)
	}
	s.lastRead = agreed
	return agreed, nil
}

// replacement is the authority that this replica last read, if it can still sign, else a new one beside the trusted.
func (s *SelfSigned) replacement(now time.Time, trusted bundle) (*authority, error) {
	if s.lastRead == nil {
		return newAuthority(now, s.options.Lifetimes, trusted)
	}
	for _, t := range s.lastRead.bundle {
		trusted = trusted.with(t.certificate, t.until)
	}
	if !now.Before(s.lastRead.signer.certificate.NotAfter) {
		return newAuthority(now, s.options.Lifetimes, trusted)
	}
	last := *s.lastRead
	last.bundle = trusted.at(now)
	return &last, nil
}

// renew replaces the leaf where its time has come, or its authority signs no more.
func (s *SelfSigned) renew(a *authority, now time.Time) error {
	served, life := s.served(), s.options.Lifetimes.Leaf
	if a.signer.current(served, now, life) {
		return nil
	}
	leaf, err := a.signer.issue(s.options.Names, now, life)
	if err != nil {
		return err
	}
	s.serve(leaf)
	s.options.Log.Info("certificate issued", "names", s.options.Names, "expires", leaf.Leaf.NotAfter)
	if served != nil {
		s.options.Metrics.rotated(served, leaf)
	}
	return nil
}

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
)

// readPeriod is how often files are read. A mounted Secret takes up to a minute and a half to arrive anyway.
const readPeriod = 10 * time.Second

// MountedOptions are which files to serve and who keeps the bundle.
type MountedOptions struct {
	// Certificate and Key are files, PEM; the certificate may come with intermediate ones.
	Certificate, Key string
	// Announce keeps the authorities of the files where cert-manager's cainjector finds them; nil: whoever keeps the files
	// keeps caBundle too.
	Announce *Announcement
	// Configurations are read, never written.
	Configurations Configurations
	// Propagation is how long a changed certificate is acceptable to every configuration before it is served.
	Propagation time.Duration
	Metrics     *Metrics
	Log         logr.Logger
}

// Mounted is a Source of a certificate and key that others keep on disk, such as a mounted Secret. The pair on disk
// replaces the served one once the live bundle accepts it; files that are no pair never do.
type Mounted struct {
	*serving
	options MountedOptions

	current, next pair      // the served pair, and the one to follow
	since         time.Time // every live configuration has accepted next since then; zero: not yet
}

// pair is the content of the files at one time.
type pair struct {
	leaf        *tls.Certificate
	authorities []*x509.Certificate // to announce for it
}

// FromFiles reads the files once, and fails where they are no pair.
func FromFiles(options MountedOptions) (*Mounted, error) {
	m := &Mounted{serving: newServing(options.Log), options: options}
	first, err := m.load(wallClock())
	if err != nil {
		return nil, err
	}
	m.current = first
	m.serve(first.leaf)
	return m, nil
}

// load reads the files.
func (m *Mounted) load(now time.Time) (pair, error) {
	leaf, err := tls.LoadX509KeyPair(m.options.Certificate, m.options.Key)
	if err != nil {
		return pair{}, fmt.Errorf("read certificate %s and key %s: %w", m.options.Certificate, m.options.Key, err)
	}
	p := pair{leaf: &leaf}
	if m.options.Announce != nil {
		p.authorities, err = readAuthorities(m.options.Announce.Authority, &leaf, now)
	}
	return p, err
}

// readAuthorities reads the file of a leaf's authorities. None may be missing: the bundle will hold nothing else.
func readAuthorities(path string, leaf *tls.Certificate, now time.Time) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	found := decodeBundle(text, nil)
	if end := leaf.Leaf.NotAfter; end.Before(now) {
		now = end // an expired certificate has an authority all the same
	}
	if _, err := accepts(found.encode(), "", leaf, now); err != nil {
		return nil, fmt.Errorf("authority %s did not sign the certificate beside it: %w", path, err)
	}
	var out []*x509.Certificate
	for _, t := range found {
		out = append(out, t.certificate)
	}
	return out, nil
}

// Start implements Source.
func (m *Mounted) Start(ctx context.Context) error {
	secret := SharedSecret{}
	if m.options.Announce != nil {
		secret = m.options.Announce.Secret
	}
	every := readPeriod
	if s := m.options.Propagation; s > 0 {
		every = min(every, s)
	}
	keepChecking(ctx, m.options.Configurations, secret, every, m.check)
	return nil
}

// check verifies the certificate and records the result.
func (m *Mounted) check(ctx context.Context, now time.Time) error {
	unusable := m.reload(now)
	found, err := m.reconcile(ctx, now)
	return m.record(ctx, now, found, errors.Join(err, unusable))
}

// reconcile announces the authorities of the files, and verifies the served pair against the live configurations.
func (m *Mounted) reconcile(ctx context.Context, now time.Time) (*finding, error) {
	var unannounced error
	if m.options.Announce != nil {
		unannounced = m.options.Announce.keep(ctx, now, m.current, m.next)
	}
	live, err := m.options.Configurations.read(ctx)
	if err != nil {
		return nil, errors.Join(err, unannounced)
	}
	found := verify(live, m.current.leaf, now)
	m.options.Metrics.mismatched(found)
	if m.due(live, now, found.err() == nil) {
		m.options.Metrics.rotated(m.current.leaf, m.next.leaf)
		m.current, m.next, m.since = m.next, pair{}, time.Time{}
		m.serve(m.current.leaf)
		m.options.Log.Info("certificate replaced", "expires", m.current.leaf.Leaf.NotAfter)
		found = verify(live, m.current.leaf, now)
	}
	m.options.Metrics.observe(m.current.leaf, found)
	return found, unannounced
}

// reload makes a pair on disk that is not the one served the next one.
func (m *Mounted) reload(now time.Time) error {
	read, err := m.load(now)
	switch {
	case err != nil:
		m.options.Metrics.unusable.Inc()
		return err
	case read.leaf.Leaf.Equal(m.current.leaf.Leaf):
		m.next, m.since = pair{}, time.Time{}
	case m.next.leaf == nil || !read.leaf.Leaf.Equal(m.next.leaf.Leaf):
		m.next, m.since = read, time.Time{}
	}
	return nil
}

// due reports whether the next pair is to be served now: every live configuration has accepted it for as long as API
// servers take to learn that, or it alone is accepted.
func (m *Mounted) due(live []configuration, now time.Time, good bool) bool {
	switch {
	case m.next.leaf == nil:
		return false
	case verify(live, m.next.leaf, now).err() != nil:
		m.since = time.Time{}
		return false
	case m.since.IsZero():
		m.since = now
	}
	return !good || now.Sub(m.since) >= m.options.Propagation
}

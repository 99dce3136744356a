package certs

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"time"
)

// Lifetimes are how long the certificates of an authority of our own last.
type Lifetimes struct {
	// Authority is how long an authority lasts. Another follows it while more than a fifth of this time is left.
	Authority time.Duration
	// Leaf is how long a serving certificate lasts. It is replaced when a third of this time is left.
	Leaf time.Duration
	// Propagation is how long a new authority is in every webhook configuration before it signs.
	Propagation time.Duration
}

// DefaultLifetimes are the lifetimes of an installation without settings. Leaves live in memory, so a short life costs nothing.
func DefaultLifetimes() Lifetimes {
	return Lifetimes{Authority: 365 * 24 * time.Hour, Leaf: 7 * 24 * time.Hour, Propagation: DefaultPropagation}
}

// ahead is how long before its end an authority gets a successor: a fifth of its own life, a leaf's, and the wait.
func (l Lifetimes) ahead() time.Duration { return l.Authority/5 + l.Leaf + l.Propagation }

// margin is how long after its last leaf an authority is forgotten: clocks differ, and replicas check now and then.
func (l Lifetimes) margin() time.Duration { return l.Leaf/7 + l.Propagation }

// authority is the replicas' common state: the present signer, the next one, and everybody to trust.
type authority struct {
	signer *signer
	next   *signer   // nil: no rotation goes on
	since  time.Time // next has stood in every configuration since then; zero: it does not yet
	bundle bundle    // signer and next among them
}

// newAuthority makes an authority beside others whose leaves may still be served.
func newAuthority(now time.Time, l Lifetimes, others bundle) (*authority, error) {
	made, err := newSigner(now, l.Authority)
	if err != nil {
		return nil, err
	}
	b := bundle{{certificate: made.certificate}}
	for _, t := range others.at(now) {
		b = b.with(t.certificate, t.until).retire(t.certificate, now.Add(l.Leaf+l.margin()))
	}
	return &authority{signer: made, bundle: b}, nil
}

// step takes a rotation one step further, where it is time: a successor is made, then put into every live configuration,
// then signs, and at last the predecessor is forgotten. rotate begins a rotation early. changed is false, and the receiver
// returned, where there is nothing to do.
func (a *authority) step(now time.Time, l Lifetimes, live []configuration, rotate bool) (_ *authority, changed bool, err error) {
	out := *a
	out.bundle = a.bundle.at(now)
	changed = len(out.bundle) != len(a.bundle)
	switch {
	case a.next == nil && (rotate || a.signer.certificate.NotAfter.Before(now.Add(l.ahead()))):
		if out.next, err = newSigner(now, l.Authority); err != nil {
			return nil, false, err
		}
		out.since, out.bundle = time.Time{}, out.bundle.with(out.next.certificate, time.Time{})
	case a.next == nil:
		return &out, changed, nil
	case !everywhere(live, a.next.certificate):
		if a.since.IsZero() {
			return &out, changed, nil
		}
		out.since = time.Time{} // another client removed it: API servers may have seen that
	case a.since.IsZero():
		out.since = now
	case now.Sub(a.since) < l.Propagation:
		return &out, changed, nil
	default:
		out.bundle = out.bundle.retire(a.signer.certificate, now.Add(l.Leaf+l.margin()))
		out.signer, out.next, out.since = a.next, nil, time.Time{}
	}
	return &out, true, nil
}

// everywhere reports whether every entry of the configurations trusts the authority.
func everywhere(live []configuration, c *x509.Certificate) bool {
	for _, one := range live {
		for _, h := range one.hooks {
			if !decodeBundle(h.bundle, nil).contains(c) {
				return false
			}
		}
	}
	return true
}

// Keys of the Secret.
const (
	keyBundle   = "ca.crt"        // every authority to trust
	keySigning  = "ca.key"        // of the one that signs
	keyNext     = "next.key"      // of the one that is to sign next
	keyRotation = "rotation.json" // times
)

// times are the Secret's fields beside certificates and keys.
type times struct {
	TrustedUntil  map[string]time.Time `json:"trustedUntil,omitempty"` // by fingerprint
	NextLiveSince *time.Time           `json:"nextLiveSince,omitempty"`
}

// decodeAuthority reads the data of a Secret. If nobody can sign, the error comes with an authority whose bundle has
// the certificates to trust on.
func decodeAuthority(data map[string][]byte, now time.Time) (*authority, error) {
	var t times
	_ = json.Unmarshal(data[keyRotation], &t) // without times, authorities are trusted as long as they last
	a := &authority{bundle: decodeBundle(data[keyBundle], t.TrustedUntil)}
	signing, err := decodeSigner(a.bundle.at(now), data[keySigning])
	if err != nil {
		return a, err
	}
	a.signer = signing
	if next, err := decodeSigner(a.bundle.at(now), data[keyNext]); err == nil && !next.certificate.Equal(signing.certificate) {
		a.next = next
		if t.NextLiveSince != nil {
			a.since = *t.NextLiveSince
		}
	}
	return a, nil
}

// encode writes the authority over the data of a Secret.
func (a *authority) encode() (map[string][]byte, error) {
	key, err := a.signer.encodeKey()
	if err != nil {
		return nil, err
	}
	t := times{TrustedUntil: a.bundle.deadlines()}
	data := map[string][]byte{keyBundle: a.bundle.encode(), keySigning: key}
	if a.next != nil {
		if data[keyNext], err = a.next.encodeKey(); err != nil {
			return nil, err
		}
		if !a.since.IsZero() {
			t.NextLiveSince = &a.since
		}
	}
	if data[keyRotation], err = json.Marshal(t); err != nil {
		return nil, fmt.Errorf("encode times: %w", err)
	}
	return data, nil
}

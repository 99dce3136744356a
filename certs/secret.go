package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of the Secret: every certificate to trust, and the key that signs.
const (
	keyBundle  = "ca.crt"
	keySigning = "ca.key"
)

// shared returns the authority of the Secret. A Secret that is missing or of no use is written: with the authority
// that this replica knew, so that every leaf stays good, else with a new one. Whichever replica writes first decides;
// the others' writes fail on the version that they read, and they take what is there.
func (s *SelfSigned) shared(ctx context.Context, now time.Time) (*authority, error) {
	const tries = 3
	for try := 1; ; try++ {
		secret, err := s.options.Client.CoreV1().Secrets(s.options.Namespace).Get(ctx, s.options.Secret, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			secret = nil
		} else if err != nil {
			return nil, fmt.Errorf("Secret %s: %w: %w", s.options.Secret, errUnread, err)
		}
		found, ok := usable(secret, now)
		if ok {
			return found, nil
		}
		replacement, err := s.replacement(now, found.bundle)
		if err != nil {
			return nil, err
		}
		err = s.write(ctx, secret, replacement)
		if err == nil {
			s.options.Log.Info("authority written", "secret", s.options.Secret, "existed", secret != nil)
			return replacement, nil
		}
		if lost := apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err); !lost || try == tries {
			return nil, fmt.Errorf("write Secret %s: %w", s.options.Secret, err)
		}
	}
}

// usable reads the authority of a Secret. One that is not usable still has the certificates to trust on.
func usable(secret *corev1.Secret, now time.Time) (*authority, bool) {
	if secret == nil {
		return &authority{}, false
	}
	found, err := decodeAuthority(secret.Data[keyBundle], secret.Data[keySigning], now)
	return found, err == nil && !found.endsBefore(now.Add(leafLife))
}

// write creates the Secret, or updates the version that was read.
func (s *SelfSigned) write(ctx context.Context, read *corev1.Secret, a *authority) error {
	key, err := a.encodeKey()
	if err != nil {
		return err
	}
	secrets := s.options.Client.CoreV1().Secrets(s.options.Namespace)
	data := map[string][]byte{keyBundle: a.encodeBundle(), keySigning: key}
	if read == nil {
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: s.options.Secret, Namespace: s.options.Namespace}, Data: data,
		}, metav1.CreateOptions{})
		return err
	}
	updated := read.DeepCopy()
	updated.Data = data
	_, err = secrets.Update(ctx, updated, metav1.UpdateOptions{})
	return err
}

// replacement is the authority that this replica knew, if it still serves, else a new one beside the trusted.
func (s *SelfSigned) replacement(now time.Time, trusted []*x509.Certificate) (*authority, error) {
	s.mu.RLock()
	known := s.authority
	s.mu.RUnlock()
	if known != nil && !known.endsBefore(now.Add(leafLife)) {
		return known, nil
	}
	if known != nil && len(trusted) == 0 {
		trusted = known.bundle
	}
	return newAuthority(now, trusted)
}

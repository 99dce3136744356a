package certs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// annotationInjectable lets cert-manager's cainjector read a Secret that no Certificate made.
const annotationInjectable = "cert-manager.io/allow-direct-injection"

// announceLeeway is how long after its last leaf an authority is announced: clocks differ.
const announceLeeway = skew

// Announcement is a Secret with every authority by which some replica's certificate is accepted, old and new
// while one follows the other. cert-manager's cainjector copies it into the webhook configurations. cert-manager itself
// keeps only the latest authority beside a certificate: injected from there, it would cut off replicas whose files have
// not changed yet.
type Announcement struct {
	Secret SharedSecret
	// Authority is the file with the authorities of the mounted certificate, PEM.
	Authority string
}

// keep puts the authorities of the pairs into the Secret, each until its leaf has expired, and takes out those whose time
// has passed.
func (a *Announcement) keep(ctx context.Context, now time.Time, pairs ...pair) error {
	_, err := a.Secret.agree(ctx, func(c *content) error {
		var t times
		_ = json.Unmarshal(c.data[keyRotation], &t) // without times, authorities are trusted as long as they last
		b := decodeBundle(c.data[keyBundle], t.TrustedUntil)
		for _, p := range pairs {
			for _, authority := range p.authorities {
				b = b.with(authority, p.leaf.Leaf.NotAfter.Add(announceLeeway))
			}
		}
		b = b.at(now)
		t.TrustedUntil = b.deadlines()
		encoded, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("encode times: %w", err)
		}
		c.data[keyBundle], c.data[keyRotation], c.annotations[annotationInjectable] = b.encode(), encoded, "true"
		return nil
	})
	return err
}

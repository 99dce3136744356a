package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func TestALeafIsRenewedWhileAThirdOfItsLifeIsLeft(t *testing.T) {
	t.Parallel()
	s, start := source(cluster()), time.Now()
	mustCheck(t, s)
	first, _ := s.GetCertificate(nil)
	if err := check(t, s, start.Add(leafLife*3/5)); err != nil {
		t.Fatal(err)
	}
	if now, _ := s.GetCertificate(nil); now != first {
		t.Error("renewed early")
	}
	if err := check(t, s, start.Add(leafLife*4/5)); err != nil {
		t.Fatal(err)
	}
	if second, _ := s.GetCertificate(nil); second == first || !s.Expiry().After(first.Leaf.NotAfter) {
		t.Errorf("not renewed: expires %s", s.Expiry())
	}
}

// TestChecksGoOn runs Start under the clock of a bubble: what somebody broke is healed at the next check, and a check
// that failed is repeated soon.
func TestChecksGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := cluster()
		s := source(client)
		var refused atomic.Bool
		refused.Store(true)
		client.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refused.Load(), nil, errors.New("the API server is away")
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Start(ctx) }()
		synctest.Wait()
		if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "the API server is away") {
			t.Errorf("ready: %v", err)
		}
		refused.Store(false)
		time.Sleep(retryEvery + time.Millisecond)
		synctest.Wait()
		if err := s.Ready(); err != nil {
			t.Errorf("not ready after the API server came back: %v", err)
		}
		good := bundles(t, client, ours)[0]
		m, _ := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, ours, metav1.GetOptions{})
		m.Webhooks[0].ClientConfig.CABundle = nil
		_, _ = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(ctx, m, metav1.UpdateOptions{})
		time.Sleep(checkEvery)
		synctest.Wait()
		if !bytes.Equal(bundles(t, client, ours)[0], good) {
			t.Error("the bundle is not healed after 20 s")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAnAuthorityAtItsEndIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	client := cluster()
	s := source(client)
	mustCheck(t, s)
	old := s.authority.signer
	near := old.NotAfter.Add(-leafLife / 2)
	if err := check(t, s, near); err != nil {
		t.Fatal(err)
	}
	if s.authority.signer.Equal(old) || !contains(s.authority.bundle, old) {
		t.Errorf("the bundle has %d certificates", len(s.authority.bundle))
	}
	if err := check(t, s, old.NotAfter.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if contains(s.authority.bundle, old) {
		t.Error("an expired authority is still in the bundle")
	}
}

func contains(all []*x509.Certificate, one *x509.Certificate) bool {
	for _, c := range all {
		if c.Equal(one) {
			return true
		}
	}
	return false
}

package rotation

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/certs"
)

// brief are lifetimes that bring every expiry forward: an authority signs for some 22 s, a leaf is replaced after 10 s.
func brief() certs.Lifetimes {
	return certs.Lifetimes{Authority: 45 * time.Second, Leaf: 15 * time.Second, Propagation: 3 * time.Second}
}

func (l *lab) selfSigned(t *testing.T, at int, life certs.Lifetimes) certs.Source {
	t.Helper()
	client := l.client(t, at)
	return certs.NewSelfSigned(certs.SelfSignedOptions{
		Secret: secret(client), Names: []string{service + "." + system + ".svc"}, Configurations: configurations(client),
		Lifetimes: life, Metrics: certs.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
	})
}

// bundle is what the API server trusts in the first entry.
func (l *lab) bundle(t *testing.T) []byte {
	t.Helper()
	found, err := l.server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), configured, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Webhooks[0].ClientConfig.CABundle
}

func authorities(t *testing.T, text []byte) (all []*x509.Certificate) {
	t.Helper()
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func holds(all []*x509.Certificate, one *x509.Certificate) bool {
	for _, c := range all {
		if c.Equal(one) {
			return true
		}
	}
	return false
}

func TestSelfSigned(t *testing.T) {
	t.Parallel()
	t.Run("no call fails while authorities and leaves are replaced", func(t *testing.T) {
		l := newLab(t)
		l.configure(t, nil)
		replicas := l.start(t, l.selfSigned(t, 0, brief()), l.selfSigned(t, 1, brief()), l.selfSigned(t, 0, brief()))
		load := l.load(t)
		load.since()
		first, leaf := authorities(t, l.bundle(t))[0], replicas[0].leaf(t)
		ready := func() {
			for i, r := range replicas {
				if err := r.source.Ready(); err != nil {
					t.Errorf("replica %d is not ready: %v", i, err)
				}
			}
		}
		took := await(t, "the first authority is followed by another, and forgotten", 90*time.Second, func() bool {
			ready()
			return !holds(authorities(t, l.bundle(t)), first)
		})
		t.Logf("the first authority was forgotten after %s", took.Round(time.Second))
		for i, r := range replicas {
			if r.leaf(t).Leaf.CheckSignatureFrom(first) == nil {
				t.Errorf("replica %d serves a certificate of the first authority", i)
			}
		}
		if replicas[0].leaf(t).Leaf.Equal(leaf.Leaf) {
			t.Error("the leaf was never replaced")
		}
		load.unharmed(t, "rotation of authority and leaves")
	})
}

func TestSelfSignedHealed(t *testing.T) {
	t.Parallel()
	t.Run("what somebody breaks is repaired", func(t *testing.T) {
		l := newLab(t)
		l.configure(t, nil)
		life := certs.DefaultLifetimes()
		replicas := l.start(t, l.selfSigned(t, 0, life), l.selfSigned(t, 1, life), l.selfSigned(t, 0, life))
		load := l.load(t)
		load.since()
		before := l.bundle(t)

		secrets := l.server.Client.CoreV1().Secrets(system)
		if err := secrets.Delete(t.Context(), shared, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		took := await(t, "the Secret is back", 30*time.Second, func() bool {
			found, err := secrets.Get(t.Context(), shared, metav1.GetOptions{})
			return err == nil && bytes.Equal(found.Data["ca.crt"], before)
		})
		t.Logf("the Secret was back with the same authority after %s", took.Round(time.Millisecond))
		load.unharmed(t, "Secret deleted")

		l.empty(t)
		took = await(t, "the bundle is back", 30*time.Second, func() bool { return bytes.Equal(l.bundle(t), before) })
		passed, failed := load.since()
		t.Logf("caBundle was back after %s; meanwhile %d pods passed, failed: %v", took.Round(time.Millisecond), passed, failed)
		await(t, "both API servers know", 10*time.Second, func() bool {
			passed, failed := load.since()
			return passed > 0 && len(failed) == 0
		})
		for i, r := range replicas {
			await(t, "every replica is ready", 10*time.Second, func() bool { return r.source.Ready() == nil })
			if len(r.leaf(t).Certificate) != 1 {
				t.Errorf("replica %d serves a chain", i)
			}
		}
	})
}

package certs

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

const (
	system  = "gpuslice-system"
	host    = "gpuslice-webhook.gpuslice-system.svc"
	ours    = "gpuslice"
	foreign = "somebody-else"
)

// configured has our two configurations and one of somebody else, each with two webhooks on the same Service.
func configured() *fake.Clientset {
	config := admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: system, Name: "gpuslice-webhook"}}
	mutating := func(name string) *admissionv1.MutatingWebhookConfiguration {
		return &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionv1.MutatingWebhook{{Name: "pods.gpuslice.dev", ClientConfig: config},
				{Name: "templates.gpuslice.dev", ClientConfig: config}},
		}
	}
	return fake.NewClientset(mutating(ours), mutating(foreign), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ours},
		Webhooks:   []admissionv1.ValidatingWebhook{{Name: "validate.gpuslice.dev", ClientConfig: config}},
	})
}

func configurations(client *fake.Clientset) Configurations {
	return Configurations{Client: client, Mutating: []string{ours}, Validating: []string{ours, "absent"}}
}

func source(client *fake.Clientset) *SelfSigned {
	return NewSelfSigned(SelfSignedOptions{
		Secret: SharedSecret{client, system, "gpuslice-authority"}, Names: []string{host, "10.99.0.2"},
		Configurations: configurations(client), Lifetimes: DefaultLifetimes(),
		Metrics: NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
	})
}

func mustCheck(t *testing.T, s interface {
	check(context.Context, time.Time) error
}) {
	t.Helper()
	if err := s.check(t.Context(), wallClock()); err != nil {
		t.Fatalf("check: %v", err)
	}
}

func bundles(t *testing.T, client *fake.Clientset, name string) [][]byte {
	t.Helper()
	m, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{m.Webhooks[0].ClientConfig.CABundle, m.Webhooks[1].ClientConfig.CABundle}
}

func secret(t *testing.T, client *fake.Clientset) *corev1.Secret {
	t.Helper()
	found, err := client.CoreV1().Secrets(system).Get(t.Context(), "gpuslice-authority", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSelfSigned(t *testing.T) {
	t.Run("replicas share an authority and have leaves of their own", func(t *testing.T) {
		t.Parallel()
		client := configured()
		one, two := source(client), source(client)
		if one.Ready() == nil {
			t.Error("ready before there is a certificate")
		}
		if _, err := one.GetCertificate(nil); err == nil {
			t.Error("serves before there is a certificate")
		}
		mustCheck(t, one)
		mustCheck(t, two)
		for _, bundle := range bundles(t, client, ours) {
			for _, s := range []*SelfSigned{one, two} {
				leaf, err := s.GetCertificate(nil)
				if err != nil || s.Ready() != nil {
					t.Fatalf("not ready: %v, %v", err, s.Ready())
				}
				for _, name := range []string{host, "10.99.0.2"} {
					if _, err := accepts(bundle, name, leaf, wallClock()); err != nil {
						t.Errorf("as %s: %v", name, err)
					}
				}
			}
		}
		a, _ := one.GetCertificate(nil)
		b, _ := two.GetCertificate(nil)
		if bytes.Equal(a.Leaf.Raw, b.Leaf.Raw) {
			t.Error("the replicas serve the same leaf")
		}
		if bytes.Contains(secret(t, client).Data[keySigning], a.Leaf.Raw) {
			t.Error("a leaf lies in the Secret")
		}
	})
}

func TestSharedSecretAgree(t *testing.T) {
	t.Run("many replicas that start together agree", func(t *testing.T) {
		t.Parallel()
		client := configured()
		var all []*SelfSigned
		var checks sync.WaitGroup
		for range 8 {
			s := source(client)
			all = append(all, s)
			checks.Go(func() { _ = s.check(t.Context(), wallClock()) })
		}
		checks.Wait()
		for _, s := range all {
			mustCheck(t, s)
			if !s.lastRead.signer.certificate.Equal(all[0].lastRead.signer.certificate) {
				t.Error("two replicas have two authorities")
			}
		}
	})
}

func TestConfigurationsHeal(t *testing.T) {
	t.Run("only our configurations are written", func(t *testing.T) {
		t.Parallel()
		client := configured()
		mustCheck(t, source(client))
		for _, bundle := range bundles(t, client, foreign) {
			if len(bundle) > 0 {
				t.Error("somebody else's configuration was written")
			}
		}
	})
	t.Run("a caBundle that was emptied is healed", func(t *testing.T) {
		t.Parallel()
		client := configured()
		s := source(client)
		mustCheck(t, s)
		before := bundles(t, client, ours)
		m, _ := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), ours, metav1.GetOptions{})
		m.Webhooks[0].ClientConfig.CABundle, m.Webhooks[1].ClientConfig.CABundle = nil, []byte("nonsense")
		if _, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		mustCheck(t, s)
		for i, bundle := range bundles(t, client, ours) {
			if !bytes.Equal(bundle, before[i]) {
				t.Errorf("webhook %d has the bundle %q", i, bundle)
			}
		}
	})
	t.Run("a configuration that is created later is written", func(t *testing.T) {
		t.Parallel()
		client := configured()
		api := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		later, err := api.Get(t.Context(), ours, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := api.Delete(t.Context(), ours, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s := source(client)
		mustCheck(t, s)
		if _, err := api.Create(t.Context(), later, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		mustCheck(t, s)
		found, err := api.Get(t.Context(), ours, metav1.GetOptions{})
		if err != nil || !bytes.Equal(found.Webhooks[0].ClientConfig.CABundle, bundles(t, client, ours)[0]) {
			t.Errorf("the bundle is not there: %v", err)
		}
	})
}

func TestSelfSignedReplacement(t *testing.T) {
	t.Run("a lost Secret comes back with the same authority", func(t *testing.T) {
		t.Parallel()
		client := configured()
		s := source(client)
		mustCheck(t, s)
		before, _ := s.GetCertificate(nil)
		for name, lose := range map[string]func(){
			"deleted": func() {
				if err := client.CoreV1().Secrets(system).Delete(t.Context(), "gpuslice-authority", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			},
			"emptied": func() {
				broken := secret(t, client)
				broken.Data = nil
				if _, err := client.CoreV1().Secrets(system).Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			},
		} {
			lose()
			mustCheck(t, s)
			if after, _ := s.GetCertificate(nil); after != before {
				t.Errorf("%s: the leaf was replaced", name)
			}
			if found, err := decodeAuthority(secret(t, client).Data, wallClock()); err != nil ||
				!found.signer.certificate.Equal(s.lastRead.signer.certificate) {
				t.Errorf("%s: the Secret holds another authority: %v", name, err)
			}
		}
	})
	t.Run("a broken key is replaced, and what was trusted stays trusted", func(t *testing.T) {
		t.Parallel()
		client := configured()
		old := source(client)
		mustCheck(t, old)
		broken := secret(t, client)
		broken.Data[keySigning] = []byte("nonsense")
		if _, err := client.CoreV1().Secrets(system).Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		mustCheck(t, source(client))
		leaf, _ := old.GetCertificate(nil)
		if _, err := accepts(bundles(t, client, ours)[0], host, leaf, wallClock()); err != nil {
			t.Errorf("the other replica's leaf is not trusted any more: %v", err)
		}
	})
}

func TestVerify(t *testing.T) {
	t.Run("a leaf under another name is not accepted", func(t *testing.T) {
		t.Parallel()
		client := configured()
		s := source(client)
		s.options.Names = []string{"localhost"}
		err := s.check(t.Context(), wallClock())
		if err == nil || s.Ready() == nil || !strings.Contains(s.Ready().Error(), "pods.gpuslice.dev") {
			t.Errorf("ready: %v", s.Ready())
		}
	})
}

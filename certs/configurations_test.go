package certs

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// suspended lets the world go on before its one write of a webhook configuration goes out.
type suspended struct {
	http.RoundTripper
	meanwhile func()
}

func (s suspended) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "webhookconfigurations") {
		s.meanwhile()
	}
	return s.RoundTripper.RoundTrip(r)
}

func TestConfigurationsHealOnAPIServer(t *testing.T) {
	// suspends a replica between reading and writing, for a whole rotation.
	t.Run("an old bundle is not written over a newer one", func(t *testing.T) {
		t.Parallel()
		server := cluster.ForTest(t, cluster.Options{})
		if err := server.Namespace(t.Context(), system, nil); err != nil {
			t.Fatal(err)
		}
		none := admissionv1.SideEffectClassNone
		api := server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
		_, err := api.Create(t.Context(), &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: ours},
			Webhooks: []admissionv1.MutatingWebhook{{Name: "pods.gpuslice.dev", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: system, Name: "gpuslice-webhook"}}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		replica := func(client kubernetes.Interface) *SelfSigned {
			s := source(nil)
			s.options.Secret.Client = client
			s.options.Configurations = Configurations{Client: client, Mutating: []string{ours}}
			s.options.Lifetimes.Propagation = 0
			return s
		}
		awake := replica(server.Client)
		mustCheck(t, awake)
		old := awake.lastRead.bundle.encode()
		empty := func() {
			t.Helper()
			found, err := api.Get(t.Context(), ours, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			found.Webhooks[0].ClientConfig.CABundle = nil
			if _, err := api.Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		var once sync.Once
		rotate := func() {
			annotated := []byte(`{"metadata":{"annotations":{"` + AnnotationRotate + `":"now"}}}`)
			if _, err := server.Client.CoreV1().Secrets(system).Patch(t.Context(), "gpuslice-authority",
				"application/merge-patch+json", annotated, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
			for range 4 {
				if err := awake.check(t.Context(), wallClock()); err != nil {
					t.Error(err)
				}
			}
		}
		config := rest.CopyConfig(server.Config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return suspended{next, func() { once.Do(rotate) }}
		})
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		asleep := replica(client)
		empty() // it sees that, and is suspended before it can repair it
		mustCheck(t, asleep)
		found, err := api.Get(t.Context(), ours, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		live := found.Webhooks[0].ClientConfig.CABundle
		if bytes.Equal(live, old) || !decodeBundle(live, nil).contains(awake.lastRead.signer.certificate) {
			t.Error("the old bundle was written over the newer one")
		}
		if _, err := accepts(live, host, awake.served(), wallClock()); err != nil {
			t.Errorf("the other replica is not trusted any more: %v", err)
		}
	})
}

package load

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// denySome registers a validating webhook of somebody else that denies three pods in ten of the namespaces that carry
// the label, whatever ours answers.
func denySome(t *testing.T, server *cluster.APIServer, label string) {
	t.Helper()
	neighbor(t, server, "denies", label, func(request *admissionv1.AdmissionRequest) bool {
		hash := fnv.New32()
		hash.Write([]byte(request.UID))
		return hash.Sum32()%10 >= 3
	})
}

// neighbor registers a validating webhook of somebody else for the pods of the namespaces that carry the label.
func neighbor(t *testing.T, server *cluster.APIServer, service, label string, admits func(*admissionv1.AdmissionRequest) bool) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: admits(review.Request)}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	var err error
	if s.TLS, err = server.ServingCertificate(service, service+".default.svc"); err != nil {
		t.Fatal(err)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	if err := server.SetEndpoints(t.Context(), "default", service, s.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	_, err = server.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: service},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: service + ".example.com", AdmissionReviewVersions: []string{"v1"},
				TimeoutSeconds: new(int32(30)),
				SideEffects:    new(admissionregistrationv1.SideEffectClassNone),
				NamespaceSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpExists}},
				},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: server.CA(),
					Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: service}},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// slowRoad stands between the replicas and the API server. While it is slow, one write of a ledger in five takes up to
// five seconds, and one list of pods in ten arrives up to ten seconds old.
type slowRoad struct {
	slow    atomic.Bool
	delayed atomic.Int64
	chance  func(p float64) bool
	upTo    func(time.Duration) time.Duration
}

// through makes the road a replica's way to the API server.
func (s *slowRoad) through(t *testing.T, server *cluster.APIServer) func(*rest.Config) (*rest.Config, error) {
	return func(config *rest.Config) (*rest.Config, error) {
		target, err := url.Parse(config.Host)
		if err != nil {
			return nil, err
		}
		transport, err := rest.TransportFor(rest.AnonymousClientConfig(server.Config))
		if err != nil {
			return nil, err
		}
		proxy := &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport:     s.delay(transport),
			FlushInterval: -1,
			ErrorLog:      log.New(io.Discard, "", 0), // an API server that is away is part of the test
		}
		front := httptest.NewUnstartedServer(proxy)
		front.Config.ErrorLog = proxy.ErrorLog
		if front.TLS, err = server.ServingCertificate("road", "127.0.0.1"); err != nil {
			return nil, err
		}
		front.StartTLS()
		t.Cleanup(front.CloseClientConnections)
		out := rest.CopyConfig(config)
		out.Host = front.URL
		return out, nil
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// delay holds writes of ledgers up on their way there, and lists of pods on their way back.
func (s *slowRoad) delay(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if s.slow.Load() && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/gpuslice-ledger-") && s.chance(0.2) {
			s.delayed.Add(1)
			pause(r.Context(), s.upTo(5*time.Second))
		}
		response, err := next.RoundTrip(r)
		if s.slow.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pods") &&
			r.URL.Query().Get("watch") == "" && s.chance(0.1) {
			s.delayed.Add(1)
			pause(r.Context(), s.upTo(10*time.Second))
		}
		return response, err
	})
}

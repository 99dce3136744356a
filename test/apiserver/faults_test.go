package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/pods"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
)

// TestFaults: what goes wrong with a review reaches the API server as an HTTP status, so that failurePolicy decides, and never as a
// denial. admission.Webhook by itself answers each of these with 200 and allowed: false.
func TestFaults(t *testing.T) {
	i := need(t)
	if err := i.Server.Namespace(t.Context(), "faults", nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		handler http.Handler
		code    int
	}{
		"panic":           {endpointOf(review.HandlerFunc(panics)), http.StatusInternalServerError},
		"full-queue":      {fullQueue(t), http.StatusTooManyRequests},
		"unreadable":      {endpointOf(pods.NewMutator(nowhere, nil)), http.StatusServiceUnavailable},
		"yaml":            {sent("kind: AdmissionReview\n"), http.StatusBadRequest},
		"no-json":         {sent(`{"kind":"AdmissionReview",`), http.StatusBadRequest},
		"a-null-review":   {sent("null"), http.StatusBadRequest},
		"without-request": {sent(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			s := &answerer{handler: c.handler}
			at := s.serve(t, name)
			for _, policy := range []admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore} {
				remove := register(t, at, name, policy)
				asked := s.asked.Load()
				var err error
				called := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
					_, err = i.Server.Client.CoreV1().Pods("faults").Create(ctx, gpuPod("pod"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					return s.asked.Load() > asked, nil
				})
				if called != nil {
					t.Fatalf("%s: the webhook is not called: %v", policy, called)
				}
				if code := int(s.code.Load()); code != c.code {
					t.Errorf("%s: answered %d, want %d", policy, code, c.code)
				}
				switch {
				case policy == admissionregistrationv1.Ignore && err != nil:
					t.Errorf("Ignore: the pod is not admitted: %v", err)
				case policy == admissionregistrationv1.Fail && (!apierrors.IsInternalError(err) || !strings.Contains(err.Error(), unanswered)):
					t.Errorf("Fail: the call does not fail: %v", err)
				case err != nil && strings.Contains(err.Error(), "denied the request"):
					t.Errorf("%s: taken for a denial: %v", policy, err)
				case err != nil && strings.Contains(err.Error(), secret):
					t.Errorf("%s: the user reads what is the log's: %v", policy, err)
				}
				remove()
			}
		})
	}
}

// secret stands for what a panic says.
const secret = "index of another tenant"

func panics(context.Context, review.Request) (review.Answer, *review.Fault) { panic(secret) }

var nowhere = pods.Options{Source: unreadable{}, Metrics: metrics.New("test"), Namespace: api.SystemNamespace}

// unreadable is a cluster of which no namespace can be read.
type unreadable struct{}

func (unreadable) Input(context.Context, string) (policies.Input, error) {
	return policies.Input{}, errors.New("the namespace cannot be read")
}

func (unreadable) ClaimSpecs(context.Context, string, *corev1.Pod) map[string]*resourcev1.ResourceClaimSpec {
	return nil
}

func endpointOf(handler review.Handler) http.Handler {
	return server.NewEndpoint("test", handler,
		server.EndpointOptions{Limits: server.NewLimits(), Metrics: metrics.New("test"), Log: logr.Discard()})
}

// admits answers every review.
func admits(context.Context, review.Request) (review.Answer, *review.Fault) {
	return review.Answer{}, nil
}

// sent is an endpoint that receives a body in place of each review.
func sent(body string) http.Handler {
	endpoint := endpointOf(review.HandlerFunc(admits))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		endpoint.ServeHTTP(w, r)
	})
}

// fullQueue is an endpoint with as many reviews as it takes, which stay until the test ends.
func fullQueue(t *testing.T) http.Handler {
	stay, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	endpoint := endpointOf(review.HandlerFunc(func(context.Context, review.Request) (review.Answer, *review.Fault) {
		<-stay.Done()
		return review.Answer{}, nil
	}))
	const body = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":{}}}`
	full := make(chan struct{})
	for range 65 { // one more than there is room for: it gets a 429
		go func() {
			r := httptest.NewRequest(http.MethodPost, server.PathMutatePods, bytes.NewReader([]byte(body)))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			endpoint.ServeHTTP(w, r)
			if w.Code == http.StatusTooManyRequests {
				close(full)
			}
		}()
	}
	select {
	case <-full:
	case <-time.After(time.Minute):
		t.Fatal("the queue does not fill")
	}
	return endpoint
}

// answerer serves a handler and notes what it answers.
type answerer struct {
	handler     http.Handler
	asked, code atomic.Int64
}

func (a *answerer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	got := httptest.NewRecorder()
	a.handler.ServeHTTP(got, r)
	a.code.Store(int64(got.Code))
	a.asked.Add(1)
	w.Header().Set("Content-Type", got.Header().Get("Content-Type"))
	w.WriteHeader(got.Code)
	_, _ = got.Body.WriteTo(w)
}

// serve listens under a Service of that name until the test ends.
func (a *answerer) serve(t *testing.T, name string) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	s := httptest.NewUnstartedServer(a)
	var err error
	if s.TLS, err = installed.Server.ServingCertificate(name, name+".default.svc"); err != nil {
		t.Fatal(err)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	if err := installed.Server.SetEndpoints(t.Context(), "default", name, s.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: installed.Server.CA(),
		Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: name}}
}

// register has the API server ask a webhook about the test's pods, until remove is called.
func register(t *testing.T, at admissionregistrationv1.WebhookClientConfig, name string,
	policy admissionregistrationv1.FailurePolicyType) (remove func()) {
	t.Helper()
	configurations := installed.Server.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	name = name + "." + strings.ToLower(string(policy))
	_, err := configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "faults.example.com", AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &policy, TimeoutSeconds: new(int32(5)),
			SideEffects:       new(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "faults"}},
			ClientConfig:      at,
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remove = func() {
		err := configurations.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	t.Cleanup(remove)
	return remove
}

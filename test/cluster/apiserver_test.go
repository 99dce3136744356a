package cluster

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.test/app"}}},
	}
}

func TestAPIServer(t *testing.T) {
	t.Parallel()
	t.Run("takes pods and enforces RBAC", func(t *testing.T) {
		t.Parallel()
		s := ForTest(t, Options{})
		ctx := t.Context()
		if err := s.Namespace(ctx, "team-a", map[string]string{"team": "a"}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Client.CoreV1().Pods("team-a").Create(ctx, pod("p"), metav1.CreateOptions{}); err != nil {
			t.Fatalf("create pod as administrator: %v", err)
		}
		account, err := s.ServiceAccount(ctx, "team-a", "default")
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(account)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.CoreV1().Pods("team-a").Create(ctx, pod("q"), metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:team-a:default") {
			t.Errorf("create pod as service account without rights: got %v, want forbidden, naming the account", err)
		}
	})
}

func TestWebhookBehindService(t *testing.T) {
	t.Parallel()
	t.Run("answers", func(t *testing.T) {
		t.Parallel()
		s := ForTest(t, Options{})
		ctx := t.Context()
		if err := s.Namespace(ctx, "hooks", nil); err != nil {
			t.Fatal(err)
		}
		one, two := startHook(t, s, "one"), startHook(t, s, "two")
		register(t, s, one.Listener.Addr().String())
		awaitAdmittedBy(t, s, "one")

		// The API server keeps its connection to an endpoint that was taken away, so the first replica has to go.
		if err := s.SetEndpoints(ctx, "hooks", "hook", two.Listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
		one.Close()
		awaitAdmittedBy(t, s, "two")
	})
}

// startHook serves a webhook that labels pods with its name, with a certificate for the Service hooks/hook.
func startHook(t *testing.T, s *APIServer, name string) *httptest.Server {
	t.Helper()
	cert, err := s.ServingCertificate("hook-"+name, "hook.hooks.svc")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &kind,
			Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"admitted-by":"` + name + `"}}]`)}
		json.NewEncoder(w).Encode(review)
	}))
	srv.TLS = cert
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// register installs a webhook configuration that names the Service, and puts backends behind it.
func register(t *testing.T, s *APIServer, backends ...string) {
	t.Helper()
	if err := s.SetEndpoints(t.Context(), "hooks", "hook", backends...); err != nil {
		t.Fatal(err)
	}
	none, path := admissionregistrationv1.SideEffectClassNone, "/mutate"
	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "pods.hook.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: s.CA(),
				Service: &admissionregistrationv1.ServiceReference{Namespace: "hooks", Name: "hook", Path: &path}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	_, err := s.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(), config, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// awaitAdmittedBy dry-runs pods until one comes back with the label of the named webhook.
func awaitAdmittedBy(t *testing.T, s *APIServer, name string) {
	t.Helper()
	await(t, "pod that went through webhook "+name, func() bool {
		got, err := s.Client.CoreV1().Pods("default").Create(t.Context(), pod("p"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && got.Labels["admitted-by"] == name
	})
}

// await polls until reached says so, for at most ten seconds.
func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !reached() {
		select {
		case <-ctx.Done():
			t.Fatalf("no %s within 10 s", what)
		case <-poll.C:
		}
	}
}

func TestControllerManager(t *testing.T) {
	t.Parallel()
	t.Run("serves new namespaces", func(t *testing.T) {
		t.Parallel()
		s := ForTest(t, Options{ControllerManager: true})
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
		if _, err := s.Client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, "pod in a namespace whose service account the controllers make", func() bool {
			_, err := s.Client.CoreV1().Pods("plain").Create(t.Context(), pod("p"), metav1.CreateOptions{})
			return err == nil
		})
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	t.Run("leaves nothing", func(t *testing.T) {
		t.Parallel()
		s := ForTest(t, Options{})
		host := strings.TrimPrefix(s.Config.Host, "https://")
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", host); err == nil {
			conn.Close()
			t.Errorf("something still listens on %s", host)
		}
	})
}

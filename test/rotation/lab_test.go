package rotation

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/gpuslice/gpuslice/certs"
	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/admission/pods"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
)

// Names of the manifests.
const (
	system     = api.SystemNamespace
	service    = "gpuslice-webhook"
	configured = "gpuslice"
	shared     = "gpuslice-authority"
	tenant     = "team-a"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // informers complain while a cluster ends
	os.Exit(m.Run())
}

// lab is a control plane with two API servers and the manifests that replicas need.
type lab struct {
	server  *cluster.APIServer
	configs []*rest.Config // of the administrator, by API server
	apply   *install.Applier
}

func newLab(t *testing.T, targets ...cluster.Target) *lab {
	t.Helper()
	cluster.Need(t)
	t.Parallel() // most of each test is waiting
	begun := time.Now()
	bin, err := cluster.Build(t.Context(), os.Stderr, append(cluster.ControlPlane(), targets...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("programs were there after %s", time.Since(begun).Round(time.Millisecond))
	srv := cluster.ForTest(t, cluster.Options{Bin: bin})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	second, err := srv.Another(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{server: srv, configs: []*rest.Config{srv.Config, second}}
	if l.apply, err = install.NewApplier(srv.Config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"10-namespace.yaml", "20-rbac.yaml", "30-service.yaml"} {
		l.manifest(t, name)
	}
	if err := srv.Namespace(t.Context(), tenant, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) manifest(t *testing.T, name string) {
	t.Helper()
	text, err := deploy.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.apply.Apply(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// configure makes a mutating and a validating configuration that call on every pod of the tenant, and deny it where the
// call fails.
func (l *lab) configure(t *testing.T, annotations map[string]string) {
	t.Helper()
	fail, none, equivalent, wait := admissionv1.Fail, admissionv1.SideEffectClassNone, admissionv1.Equivalent, int32(5)
	calls := func(path string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: system, Name: service, Path: &path}}
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: tenant}}
	rules := []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}
	meta := metav1.ObjectMeta{Name: configured, Annotations: annotations}
	mutating := func(name string) admissionv1.MutatingWebhook {
		return admissionv1.MutatingWebhook{Name: name, ClientConfig: calls(server.PathMutatePods),
			Rules: rules, FailurePolicy: &fail, SideEffects: &none,
			MatchPolicy: &equivalent, NamespaceSelector: selector, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: &wait}
	}
	client := l.server.Client.AdmissionregistrationV1()
	_, err := client.MutatingWebhookConfigurations().Create(t.Context(), &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{mutating("one.gpuslice.dev"), mutating("two.gpuslice.dev")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ValidatingWebhookConfigurations().Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: meta,
		Webhooks: []admissionv1.ValidatingWebhook{{Name: "three.gpuslice.dev",
			ClientConfig: calls(server.PathMutatePods), Rules: rules, FailurePolicy: &fail,
			SideEffects: &none, MatchPolicy: &equivalent, NamespaceSelector: selector, AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds: &wait}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// client has the rights of the webhook's ServiceAccount, at one of the API servers.
func (l *lab) client(t *testing.T, at int) kubernetes.Interface {
	t.Helper()
	config, err := l.server.ServiceAccount(t.Context(), system, pods.ServiceAccount)
	if err != nil {
		t.Fatal(err)
	}
	config.Host = l.configs[at].Host
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// configurations and secret are what a source reads, as a replica that talks to one of the API servers.
func configurations(client kubernetes.Interface) certs.Configurations {
	return certs.Configurations{Client: client, Mutating: []string{configured}, Validating: []string{configured}}
}

func secret(client kubernetes.Interface) certs.SharedSecret {
	return certs.SharedSecret{Client: client, Namespace: system, Name: shared}
}

// empty takes caBundle out of every entry of the mutating configuration, as a tool that knows better would.
func (l *lab) empty(t *testing.T) {
	t.Helper()
	_, err := l.server.Kubectl(t.Context(), "patch", "mutatingwebhookconfiguration", configured, "--type=json",
		"-p", `[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"},{"op":"remove","path":"/webhooks/1/clientConfig/caBundle"}]`)
	if err != nil {
		t.Fatal(err)
	}
}

// await polls until reached, and returns how long it took.
func await(t *testing.T, what string, within time.Duration, reached func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for !reached() {
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: the test ended first", what)
		case <-poll.C:
		}
		if time.Since(begun) > within {
			t.Fatalf("%s: not within %s", what, within)
		}
	}
	return time.Since(begun)
}

package bench

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// createsOfPods are the requests that are compared.
var createsOfPods = admissionregistrationv1.RuleWithOperations{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
}

// only selects one namespace.
func only(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

// register registers a mutating webhook that says yes to every pod of its namespace, with the patch that answer gives.
func register(t *testing.T, server *cluster.APIServer, namespace string, answer func(*admissionv1.AdmissionRequest) []byte) {
	t.Helper()
	_, err := server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "answers-" + namespace},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "answers.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
				NamespaceSelector: only(namespace), ClientConfig: serve(t, server, namespace, "answers", answer),
				Rules: []admissionregistrationv1.RuleWithOperations{createsOfPods},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// registerCheck registers a validating webhook that says yes to every pod of its namespace.
func registerCheck(t *testing.T, server *cluster.APIServer, namespace string) {
	t.Helper()
	_, err := server.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "checks-" + namespace},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "checks.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
				NamespaceSelector: only(namespace),
				ClientConfig:      serve(t, server, namespace, "checks", func(*admissionv1.AdmissionRequest) []byte { return nil }),
				Rules:             []admissionregistrationv1.RuleWithOperations{createsOfPods},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts a service that says yes, with the patch that answer gives.
func serve(t *testing.T, server *cluster.APIServer, namespace, service string,
	answer func(*admissionv1.AdmissionRequest) []byte) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if patch := answer(review.Request); patch != nil {
			review.Response.Patch, review.Response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	var err error
	if s.TLS, err = server.ServingCertificate(service, service+"."+namespace+".svc"); err != nil {
		t.Fatal(err)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	if err := server.SetEndpoints(t.Context(), namespace, service, s.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: server.CA(),
		Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service}}
}

// slicedByExpression is what of a slice an expression can write without knowing nodes, images and quotas: a container that checks,
// a volume and variables of fixed values, and an annotation.
const slicedByExpression = `Object{
	metadata: Object.metadata{annotations: {"gpuslice.dev/planned": "by an expression"}},
	spec: Object.spec{
		initContainers: [Object.spec.initContainers{name: "check", image: "gpuslice/guard:test",
			volumeMounts: [Object.spec.initContainers.volumeMounts{name: "check", mountPath: "/check"}]}],
		volumes: [Object.spec.volumes{name: "check", emptyDir: Object.spec.volumes.emptyDir{}}],
		containers: object.spec.containers.map(c, Object.spec.containers{name: c.name,
			env: [
				Object.spec.containers.env{name: "PYTORCH_CUDA_ALLOC_CONF", value: "expandable_segments:True"},
				Object.spec.containers.env{name: "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", value: "0=" + object.metadata.labels["gpuslice.dev/memory"]}],
			volumeMounts: [Object.spec.containers.volumeMounts{name: "check", mountPath: "/check"}]})}}`

// registerExpression registers a MutatingAdmissionPolicy that gives the pods of its namespace what an expression can give. It
// returns once the policy acts.
func registerExpression(t *testing.T, server *cluster.APIServer, namespace string) {
	t.Helper()
	api := server.Client.AdmissionregistrationV1()
	const name = "slices"
	_, err := api.MutatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy, FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: only(namespace),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: createsOfPods}}},
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: slicedByExpression}}},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = api.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		made, err := server.Client.CoreV1().Pods(namespace).Create(ctx, pod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && len(made.Spec.InitContainers) > 0, err
	})
	if err != nil {
		t.Fatal("the expression gives nothing: ", err)
	}
}

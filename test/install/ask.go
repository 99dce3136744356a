package install

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies/api"
)

// Asker sends a webhook reviews as an API server does: over TLS, with the authority of the webhook configuration, first
// to the mutating webhook, and the result to the validating one.
type Asker struct {
	client  *http.Client
	address string
}

// Answer is the answer for a pod.
type Answer struct {
	Pod      *unstructured.Unstructured // as it came out; nil: denied
	Denied   *metav1.Status
	Warnings []string
}

// NewAsker reads the authority from the webhook configuration on the server that config reaches.
func NewAsker(ctx context.Context, config *rest.Config, p *Process) (*Asker, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	configuration, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "gpuslice", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the webhook configuration: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(configuration.Webhooks[0].ClientConfig.CABundle) {
		return nil, fmt.Errorf("the webhook configuration has no authority")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: service + "." + api.SystemNamespace + ".svc"}}
	return &Asker{&http.Client{Transport: transport}, p.Reviews}, nil
}

// Create reviews a pod that somebody creates.
func (a *Asker) Create(ctx context.Context, pod *unstructured.Unstructured) (Answer, error) {
	pod = pod.DeepCopy() // the API server sets these before its call
	pod.SetUID(uuid.NewUUID())
	pod.SetCreationTimestamp(metav1.Now())
	var out Answer
	mutated, err := a.review(ctx, "/mutate-pods", pod, &out)
	if err != nil || out.Denied != nil {
		return out, err
	}
	after := pod.DeepCopy()
	if len(mutated.Patch) > 0 {
		if after, err = patched(pod, mutated.Patch); err != nil {
			return out, err
		}
	}
	if _, err := a.review(ctx, "/validate-pods", after, &out); err != nil || out.Denied != nil {
		return out, err
	}
	out.Pod = after
	return out, nil
}

func patched(pod *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	before, err := pod.MarshalJSON()
	if err != nil {
		return nil, err
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("read the webhook's patch: %w", err)
	}
	text, err := operations.Apply(before)
	if err != nil {
		return nil, fmt.Errorf("apply the webhook's patch: %w", err)
	}
	after := &unstructured.Unstructured{}
	return after, after.UnmarshalJSON(text)
}

func (a *Asker) review(ctx context.Context, path string, pod *unstructured.Unstructured,
	out *Answer) (*admissionv1.AdmissionResponse, error) {
	raw, err := pod.MarshalJSON()
	if err != nil {
		return nil, err
	}
	asked := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: uuid.NewUUID(), Operation: admissionv1.Create, Namespace: pod.GetNamespace(), Name: pod.GetName(),
			Kind:     metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Object:   runtime.RawExtension{Raw: raw},
		},
	}
	asked.Request.UserInfo.Username = "you"
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+a.address+path+"?timeout=10s", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call the webhook: %w", err)
	}
	defer resp.Body.Close()
	var answered admissionv1.AdmissionReview
	if err := json.NewDecoder(resp.Body).Decode(&answered); err != nil || answered.Response == nil {
		return nil, fmt.Errorf("the webhook answered %s without a review: %w", resp.Status, err)
	}
	out.Warnings = append(out.Warnings, answered.Response.Warnings...)
	if !answered.Response.Allowed {
		out.Denied = answered.Response.Result
		if out.Denied == nil {
			out.Denied = &metav1.Status{Message: "denied"}
		}
	}
	return answered.Response, nil
}

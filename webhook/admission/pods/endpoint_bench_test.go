package pods

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/scenarios"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
)

// BenchmarkCreate is one review in process, from its headers to its answer: by the mutating webhook of the pod as the API server
// sends it, and by the validating one of what that made of it. The large pod has 16 containers of 50 variables; the other one
// asks for no GPU.
func BenchmarkCreate(b *testing.B) {
	source := benchSource(b)
	options := Options{Source: source, Metrics: metrics.New("bench"), Namespace: api.SystemNamespace}
	mutating, validating := NewMutator(options, testKeys), NewVerifier(options, fixedKeys{testKeys()}, nil)
	for _, c := range []struct {
		name    string
		pod     *corev1.Pod
		outcome policies.Outcome
	}{
		{"slice", defaulted(1, 3, "gpuslice.dev/memory"), policies.Mutated},
		{"large", defaulted(16, 50, "gpuslice.dev/memory"), policies.Mutated},
		{"no-gpu", defaulted(1, 3, "app"), policies.Unchanged},
	} {
		raw, err := json.Marshal(c.pod)
		if err != nil {
			b.Fatal(err)
		}
		answer := b.Run("mutate-"+c.name, func(b *testing.B) { benchReview(b, mutating, raw, c.outcome) })
		if stored := storedPod(b, mutating, raw); answer && c.outcome == policies.Mutated {
			b.Run("validate-"+c.name, func(b *testing.B) { benchReview(b, validating, stored, policies.Unchanged) })
		}
	}
}

// benchReview sends the same review again and again.
func benchReview(b *testing.B, handler review.Handler, raw []byte, outcome policies.Outcome) {
	endpoint := server.NewEndpoint("pods", handler,
		server.EndpointOptions{Limits: server.NewLimits(), Metrics: metrics.New("bench"), Log: logr.Discard()})
	body := reviewOf(b, raw)
	b.ReportAllocs()
	for b.Loop() {
		if w := post(endpoint, strings.NewReader(body)); w.Code != http.StatusOK ||
			!strings.Contains(w.Body.String(), fmt.Sprintf(`"outcome":%q`, outcome)) {
			b.Fatalf("answered %d %s", w.Code, w.Body)
		}
	}
}

// storedPod is what the handler's patch makes of a pod.
func storedPod(b *testing.B, handler review.Handler, raw []byte) []byte {
	w := httptest.NewRecorder()
	endpoint := server.NewEndpoint("pods", handler,
		server.EndpointOptions{Limits: server.NewLimits(), Metrics: metrics.New("bench"), Log: logr.Discard()})
	r := httptest.NewRequest(http.MethodPost, server.PathMutatePods, strings.NewReader(reviewOf(b, raw)))
	r.Header.Set("Content-Type", "application/json")
	endpoint.ServeHTTP(w, r)
	var answered admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answered); err != nil {
		b.Fatal(err)
	}
	if len(answered.Response.Patch) == 0 {
		return raw
	}
	patch, err := jsonpatch.DecodePatch(answered.Response.Patch)
	if err != nil {
		b.Fatal(err)
	}
	out, err := patch.Apply(raw)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

func reviewOf(b *testing.B, raw []byte) string {
	body := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "705ab4f5-6393-11e8-b7cc-42010a800002", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "team-a",
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}}
	body.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	text, err := json.Marshal(body)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// benchSource is a namespace whose policy takes slices of four pools, with a guard.
func benchSource(b *testing.B) fixed {
	all, err := scenarios.All()
	if err != nil {
		b.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s scenarios.Scenario) bool { return s.Name == "framework-pytorch-2-4" })
	return scenarioSource(all[i])
}

// defaulted is a pod as the API server sends it to webhooks: with its defaults, the mounts of its token, and managed fields.
func defaulted(containers, variables int, label string) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "train-", Namespace: "team-a",
			Labels: map[string]string{"app.kubernetes.io/name": "train", label: "4Gi"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl-create",
				Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/name":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c0\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{".":{},"f:limits":{}}}},"f:restartPolicy":{}}}`)}}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: new(int64(30)), DNSPolicy: corev1.DNSClusterFirst,
			ServiceAccountName: "default", DeprecatedServiceAccount: "default", SecurityContext: &corev1.PodSecurityContext{},
			SchedulerName: "default-scheduler", EnableServiceLinks: new(true), Priority: new(int32(0)),
			PreemptionPolicy: new(corev1.PreemptLowerPriority),
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(300))},
			},
			Volumes: []corev1.Volume{{Name: "kube-api-access-abcde",
				VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420)),
					Sources: []corev1.VolumeProjection{
						{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
					}}}}},
		},
	}
	for i := range containers {
		c := corev1.Container{Name: fmt.Sprint("c", i),
			Image: "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime", Command: []string{"python", "train.py"},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent",
			VolumeMounts: []corev1.VolumeMount{
				{Name: "kube-api-access-abcde", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
			}}
		if i == 0 && label != "app" {
			c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"),
				"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")}
			c.Resources.Requests = c.Resources.Limits
		}
		for v := range variables {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", v), Value: "value"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

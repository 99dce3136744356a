package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/install"
)

// guardMirror is the one that the installation lists.
const guardMirror = "mirror.test/hub/guard"

// mirrored points every image of a pod to a registry, as image swappers do.
func mirrored(registry string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var patch []string
		for field, list := range map[string][]corev1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
			for i, c := range list {
				name := c.Image[strings.LastIndexByte(c.Image, '/')+1:]
				patch = append(patch, fmt.Sprintf(`{"op":"replace","path":"/spec/%s/%d/image","value":%q}`, field, i, registry+"/"+name))
			}
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true,
			PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: []byte("[" + strings.Join(patch, ",") + "]")}
		json.NewEncoder(w).Encode(review)
	}
}

// swapper registers such a webhook for a namespace, and waits until the API server calls it.
func swapper(t *testing.T, i *install.Installation, name, namespace, registry string, again admissionregistrationv1.ReinvocationPolicyType) {
	t.Helper()
	s := httptest.NewUnstartedServer(mirrored(registry))
	var err error
	if s.TLS, err = i.Server.ServingCertificate(name, name+".default.svc"); err != nil {
		t.Fatal(err)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	if err := i.Server.SetEndpoints(t.Context(), "default", name, s.Listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	configurations := i.Server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err = configurations.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "images.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone), ReinvocationPolicy: &again,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{CABundle: i.Server.CA(), Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: name}},
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configurations.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "busybox:1"}}}}
		got, err := i.Server.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && got.Spec.Containers[0].Image == registry+"/busybox:1", nil
	})
	if err != nil {
		t.Fatal("no image was moved: ", err)
	}
}

// TestImageSwapper has a webhook of somebody else's move every image to a mirror, before and after gpuslice.
func TestImageSwapper(t *testing.T) {
	for _, c := range []struct {
		name, hook, registry string
		again                admissionregistrationv1.ReinvocationPolicyType
		want                 string // the guard's image; "": the pod is denied
	}{
		{"before gpuslice", "a-swaps", "mirror.test/hub", admissionregistrationv1.IfNeededReinvocationPolicy, guardMirror + ":test"},
		{"after gpuslice", "z-swaps", "mirror.test/hub", admissionregistrationv1.IfNeededReinvocationPolicy, guardMirror + ":test"},
		{"after gpuslice, once", "z-once", "mirror.test/hub", admissionregistrationv1.NeverReinvocationPolicy, guardMirror + ":test"},
		{"to a registry that is not listed", "z-other", "other.test/hub", admissionregistrationv1.IfNeededReinvocationPolicy, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := need(t)
			namespace := "images-" + c.hook
			setUpReapply(t, i, namespace)
			swapper(t, i, c.hook, namespace, c.registry, c.again)
			_, err := i.Apply.Create(t.Context(), podOf(t, "p", namespace, manifests["label"]), metav1.CreateOptions{})
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), `gpuslice-check, gpuslice-guard has image "other.test/hub/guard:test" in place of "gpuslice/guard:test"; another webhook rewrites images`) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pod, err := i.Server.Client.CoreV1().Pods(namespace).Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var images []string
			for _, c := range pod.Spec.InitContainers {
				images = append(images, c.Image)
			}
			if want := c.want + " " + c.want; strings.Join(images, " ") != want || pod.Annotations[api.AnnotationPlanned] == "" {
				t.Errorf("%q, %v", images, pod.Annotations)
			}
		})
	}
}

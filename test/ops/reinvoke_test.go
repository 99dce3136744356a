package ops

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reinvoke registers a webhook of somebody else that changes every pod of the team after ours, so that ours is asked again:
// by chance of another replica.
func (l *lab) reinvoke() {
	l.t.Helper()
	const name = "z-changes" // webhooks are called by name
	s := httptest.NewUnstartedServer(http.HandlerFunc(changes))
	var err error
	s.TLS, err = l.Server.ServingCertificate(name, name+".default.svc")
	l.must(err)
	s.StartTLS()
	l.t.Cleanup(s.Close)
	l.must(l.Server.SetEndpoints(l.t.Context(), "default", name, s.Listener.Addr().String()))
	_, err = l.Server.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(l.t.Context(),
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "changes.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: team}},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: l.Server.CA(),
					Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: name}},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
			}},
		}, metav1.CreateOptions{})
	l.must(err)
	eventually(l.t, settles, "ours is asked again", func() string {
		before := l.calls().made
		if err := l.judged(l.t.Context()); err != nil {
			return err.Error()
		}
		if l.calls().made-before < 3 { // twice to change, once to judge
			return "it is not"
		}
		return ""
	})
}

// changes gives a pod an annotation.
func changes(w http.ResponseWriter, r *http.Request) {
	var asked admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	var pod corev1.Pod
	before := asked.Request.Object.Raw
	if err := json.Unmarshal(before, &pod); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "example.com/changed", "yes")
	after, err := json.Marshal(&pod)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	operations, err := jsonpatch.CreatePatch(before, after)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	asked.Response = &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: true,
		Patch: patch, PatchType: new(admissionv1.PatchTypeJSONPatch)}
	asked.Request = nil
	_ = json.NewEncoder(w).Encode(asked)
}

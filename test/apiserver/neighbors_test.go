package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/install"
)

// neighbor registers a webhook of somebody else that changes the new pods of a namespace, and waits until the API server calls it.
func neighbor(t *testing.T, i *install.Installation, name, namespace string,
	again admissionregistrationv1.ReinvocationPolicyType, change func(*corev1.Pod)) {
	t.Helper()
	const called = "example.com/called"
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		before := review.Request.Object.Raw
		var pod corev1.Pod
		if err := json.Unmarshal(before, &pod); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		change(&pod)
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, called, name)
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
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true,
			PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: patch}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
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
			Name: "neighbor.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), ReinvocationPolicy: &again,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: i.Server.CA(),
				Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: name}},
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
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "busybox:1"}}}}
		got, err := i.Server.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && got.Annotations[called] == name, nil
	})
	if err != nil {
		t.Fatal("the other webhook is not called: ", err)
	}
}

// intoEvery has a change written into every container.
func intoEvery(write func(*corev1.Container)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				write(&list[i])
			}
		}
	}
}

// sets has every container set a variable.
func sets(name, value string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		for i := range c.Env {
			if c.Env[i].Name == name {
				c.Env[i] = corev1.EnvVar{Name: name, Value: value}
				return
			}
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

// proxies set variables, as Kyverno's policies for proxies do.
func proxies(c *corev1.Container) { sets("HTTP_PROXY", "http://proxy:3128")(c) }

// tokens write what webhooks for cloud identities write, such as EKS's: variables, and a mount of a token.
func tokens(pod *corev1.Pod) {
	const name, at = "aws-iam-token", "/var/run/secrets/eks.amazonaws.com/serviceaccount"
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "sts.amazonaws.com", Path: "token"}},
				}}}})
	}
	intoEvery(func(c *corev1.Container) {
		sets("AWS_WEB_IDENTITY_TOKEN_FILE", at+"/token")(c)
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == name }) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: true})
		}
	})(pod)
}

// disk sets what containers may write to the node's disk, as Kyverno's defaults do.
func disk(c *corev1.Container) {
	for _, list := range []*corev1.ResourceList{&c.Resources.Limits, &c.Resources.Requests} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
}

// TestNeighbors has a webhook of somebody else write into every container, gpuslice's too: before and after gpuslice, asked again or not.
func TestNeighbors(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*corev1.Pod)
		stays  func(corev1.Container) bool // in gpuslice's containers; nil: nothing
		denied string
	}{
		"proxy": {change: intoEvery(proxies), stays: func(c corev1.Container) bool {
			return c.Env[len(c.Env)-1] == corev1.EnvVar{Name: "HTTP_PROXY", Value: "http://proxy:3128"}
		}},
		"token": {change: tokens, stays: func(c corev1.Container) bool {
			return c.VolumeMounts[len(c.VolumeMounts)-1].Name == "aws-iam-token"
		}},
		"disk": {change: intoEvery(disk), stays: func(c corev1.Container) bool {
			return c.Resources.Limits.StorageEphemeral().String() == "1Gi"
		}},
		"library": {change: intoEvery(sets("LD_PRELOAD", "/opt/agent.so")),
			denied: "spec.initContainers[gpuslice-check].env[LD_PRELOAD]; spec.initContainers[gpuslice-guard].env[LD_PRELOAD]; another webhook did this; those who run the cluster exclude containers gpuslice-* there"},
	} {
		for _, order := range []struct {
			name, before string
			again        admissionregistrationv1.ReinvocationPolicyType
			writes, last bool // the other webhook writes into gpuslice's containers, and gpuslice is not asked after it
		}{
			{"before", "a-", admissionregistrationv1.IfNeededReinvocationPolicy, true, false},
			{"before-once", "a-", admissionregistrationv1.NeverReinvocationPolicy, false, false},
			{"after", "z-", admissionregistrationv1.IfNeededReinvocationPolicy, true, true},
			{"after-once", "z-", admissionregistrationv1.NeverReinvocationPolicy, true, false},
		} {
			t.Run(what+" "+order.name, func(t *testing.T) {
				i := need(t)
				namespace := "neighbor-" + what + "-" + order.name
				setUpReapply(t, i, namespace)
				neighbor(t, i, order.before+what, namespace, order.again, c.change)
				_, err := i.Apply.Create(t.Context(), podOf(t, "p", namespace, manifests["label"]), metav1.CreateOptions{})
				if c.denied != "" && order.last {
					if err == nil || !strings.Contains(err.Error(), c.denied) {
						t.Errorf("%v, want %s", err, c.denied)
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
				if pod.Annotations[api.AnnotationPlanned] == "" || len(pod.Spec.InitContainers) != 2 {
					t.Fatalf("no slice with a guard: %+v", pod.Spec.InitContainers)
				}
				for _, own := range pod.Spec.InitContainers {
					for _, v := range own.Env {
						if v.Name == "LD_PRELOAD" {
							t.Errorf("container %s has %v", own.Name, v)
						}
					}
					if order.writes && c.stays != nil && !c.stays(own) {
						t.Errorf("container %s has nothing of the other webhook's: %v %v %v", own.Name, own.Env, own.VolumeMounts, own.Resources)
					}
				}
			})
		}
	}
}

// TestNeighborRequests: a webhook that is called later may add the request itself. Kubernetes then calls again only those entries that
// it has called before, so one entry has to select pods with the request and pods without it.
func TestNeighborRequests(t *testing.T) {
	i := need(t)
	setUpReapply(t, i, "neighbor-requests")
	neighbor(t, i, "z-requests", "neighbor-requests", admissionregistrationv1.NeverReinvocationPolicy, func(p *corev1.Pod) {
		if len(p.Spec.Containers[0].Resources.Limits) > 0 { // neighbor awaits its webhook with a pod that requests nothing
			metav1.SetMetaDataLabel(&p.ObjectMeta, api.LabelMemory, "4Gi")
		}
	})
	pod := podOf(t, "p", "neighbor-requests", "spec:\n  containers:\n  - {name: a, image: x, resources: {limits: {nvidia.com/gpu: 1}}}\n")
	if _, err := i.Apply.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := i.Server.Client.CoreV1().Pods("neighbor-requests").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.Annotations[api.AnnotationSummary], "4Gi") {
		t.Errorf("no slice of 4Gi: %v", got.Annotations)
	}
}

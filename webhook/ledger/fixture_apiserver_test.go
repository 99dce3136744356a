package ledger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

const system = "gpuslice-system"

func hold(pod *corev1.Pod) (quota.Holding, ledger.ChargeBasis) {
	h, _ := accounting.HoldingOf(promise.Keys{}, pod, nil)
	return h, ledger.BasisUnmanaged
}

func sameGeneration(string) any { return 0 }

func gpuPod(name string) *corev1.Pod {
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "example.test/app", Resources: corev1.ResourceRequirements{Limits: one}}}}}
}

// hook serves reviews of pods by one replica's ledger.
func hook(l *ledger.Ledger, limit int64) http.HandlerFunc {
	limited := quota.Quota{Limits: []quota.Limit{{Name: "team-a", Limits: quota.Limits{GPUs: &limit}}}}
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
		holding, _ := hold(&pod)
		a := l.Reserve(r.Context(), ledger.Request{
			Budget: ledger.Budget{Key: "namespace/" + pod.Namespace, Namespaces: []string{pod.Namespace}}, Quota: limited,
			PodUID: string(pod.UID), Name: pod.Name, Holding: holding, DryRun: *review.Request.DryRun,
		})
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: a.Decision == ledger.Admitted,
			Result: &metav1.Status{Code: http.StatusForbidden, Message: a.Reason}}
		if v := quota.Denial(a.Excess); v != nil {
			review.Response.Result.Message = v.String()
		}
		if a.Decision == ledger.Busy {
			review.Response.Result.Code = http.StatusTooManyRequests
		}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// serve puts three replicas, which read and write by client, behind the Service of a validating webhook, and returns
// their ledgers.
func serve(t *testing.T, s *cluster.APIServer, client kubernetes.Interface, limit int64) (ledgers []*ledger.Ledger) {
	t.Helper()
	var addresses []string
	for range 3 {
		l := ledger.New(ledger.Options{Store: ledger.ClusterStore{Client: client, Namespace: system},
			Lister: &ledger.ClusterLister{Client: client, HoldingOf: hold, Generation: sameGeneration}})
		t.Cleanup(l.Close)
		ledgers = append(ledgers, l)
		cert, err := s.ServingCertificate("quota", "quota."+system+".svc")
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(hook(l, limit))
		server.TLS = cert
		server.StartTLS()
		t.Cleanup(server.Close)
		addresses = append(addresses, server.Listener.Addr().String())
	}
	if err := s.SetEndpoints(t.Context(), system, "quota", addresses...); err != nil {
		t.Fatal(err)
	}
	effects, fail := admissionregistrationv1.SideEffectClassNoneOnDryRun, admissionregistrationv1.Fail
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "quota"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "quota.gpuslice.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: &effects, FailurePolicy: &fail,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: s.CA(),
				Service: &admissionregistrationv1.ServiceReference{Namespace: system, Name: "quota", Path: new("/")}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"quota": "held"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
		}}}
	if _, err := s.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitHeld(t, s)
	return ledgers
}

// awaitHeld dry-runs pods that no quota allows until one is denied.
func awaitHeld(t *testing.T, s *cluster.APIServer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	probe := gpuPod("probe")
	probe.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("1M")
	for poll := time.NewTicker(50 * time.Millisecond); ; {
		if _, err := s.Client.CoreV1().Pods("team-a").Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil &&
			!apierrors.IsInternalError(err) && ctx.Err() == nil {
			t.Logf("the webhook answers: %v", err) // with an internal error, the API server does not know its endpoints yet
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("the webhook was not called within 20 s")
		case <-poll.C:
		}
	}
}

func containsQuota(err error) bool {
	return strings.Contains(err.Error(), "exceeded quota: team-a, requested: gpus=1")
}

// inversionSite makes the namespaces, gives both ServiceAccounts the rights they need, and applies the level.
func inversionSite(t *testing.T, s *cluster.APIServer, level bool) {
	t.Helper()
	ctx := t.Context()
	files := []string{"10-namespace.yaml", "20-rbac.yaml"}
	if level {
		files = append(files, "35-flow.yaml")
	}
	if _, err := install.Manifests(ctx, s.Config, files...); err != nil {
		t.Fatal(err)
	}
	if err := s.Namespace(ctx, "team-a", map[string]string{"quota": "held"}); err != nil {
		t.Fatal(err)
	}
	all := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "all"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: system, Name: "gpuslice-webhook"},
			{Kind: "ServiceAccount", Namespace: "team-a", Name: "default"}}}
	if _, err := s.Client.RbacV1().ClusterRoleBindings().Create(ctx, all, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// as is a client with a real token of a ServiceAccount: an administrator's calls would be exempt from every limit.
func as(t *testing.T, s *cluster.APIServer, namespace, name string) kubernetes.Interface {
	t.Helper()
	config, err := s.ServiceAccount(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// create600 creates 600 pods, 300 at a time, and returns what was denied and how long each took.
func create600(t *testing.T, client kubernetes.Interface) (denied []error, times []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var running sync.WaitGroup
	places := make(chan struct{}, 300)
	for i := range 600 {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			begin := time.Now()
			_, err := client.CoreV1().Pods("team-a").Create(t.Context(), gpuPod(fmt.Sprintf("pod-%d", i)), metav1.CreateOptions{})
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Since(begin))
			if err != nil {
				denied = append(denied, err)
			}
		})
	}
	running.Wait()
	slices.Sort(times)
	return denied, times
}

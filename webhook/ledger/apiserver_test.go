package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

const system = "gpuslice-system"

func hold(pod *corev1.Pod) (policies.Holding, ledger.ChargeBasis) {
	h, _ := policies.HoldingOf(pod, policies.Keys{}, nil)
	return h, ledger.BasisUnmanaged
}

func gpuPod(name string) *corev1.Pod {
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "example.test/app", Resources: corev1.ResourceRequirements{Limits: one}}}}}
}

func TestClusterStore(t *testing.T) {
	s := cluster.ForTest(t, cluster.Options{})
	ctx := t.Context()
	if err := errors.Join(s.Namespace(ctx, system, nil), s.Namespace(ctx, "team-a", nil)); err != nil {
		t.Fatal(err)
	}
	store := ledger.ClusterStore{Client: s.Client, Namespace: system}
	want := func(what string, err, kind error) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", what, err, kind)
		}
	}
	_, err := store.Get(ctx, "gpuslice-ledger-a")
	want("read what is not there", err, ledger.ErrNotFound)
	first, err := store.Create(ctx, ledger.Object{Name: "gpuslice-ledger-a", Budget: teamA, Data: []byte("{}")})
	want("create", err, nil)
	_, err = store.Create(ctx, ledger.Object{Name: first.Name})
	want("create again", err, ledger.ErrExists)
	second := first
	second.Data = []byte(`{"v":1}`)
	second, err = store.Update(ctx, second)
	want("update", err, nil)
	_, err = store.Update(ctx, first)
	want("update by an old version", err, ledger.ErrConflict)
	if got, err := store.Get(ctx, first.Name); err != nil || string(got.Data) != `{"v":1}` || got.Version != second.Version || got.UID == "" {
		t.Errorf("read back %+v, %v", got, err)
	}
	_, err = ledger.ClusterStore{Client: s.Client, Namespace: "nowhere"}.Create(ctx, first)
	want("create in no namespace", err, ledger.ErrRejected)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = store.Get(gone, first.Name)
	want("read by one who has gone", err, ledger.ErrUnknown)

	for _, name := range []string{"lives", "done"} {
		if _, err := s.Client.CoreV1().Pods("team-a").Create(ctx, gpuPod(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	done := []byte(`{"status":{"phase":"Succeeded"}}`)
	if _, err := s.Client.CoreV1().Pods("team-a").Patch(ctx, "done", types.MergePatchType, done, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	l, err := (&ledger.ClusterLister{Client: s.Client, HoldingOf: hold}).List(ctx, []string{"team-a", "nowhere"})
	if err != nil || len(l.Pods) != 1 || l.Pods[0].Name != "lives" || l.Pods[0].Holding.Charge.GPUs != 1 || !l.Pods[0].Unmanaged {
		t.Errorf("listed %+v, %v", l.Pods, err)
	}
	if len(l.Namespaces) != 2 || l.Namespaces[0].UID == "" || l.Namespaces[1].UID != "" {
		t.Errorf("namespaces %+v", l.Namespaces)
	}
}

// hook serves reviews of pods by one replica's ledger.
func hook(l *ledger.Ledger, limit int64) http.HandlerFunc {
	quota := policies.Quota{Limits: []policies.QuotaLimit{{Name: "team-a", Limits: policies.QuotaLimits{GPUs: &limit}}}}
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
			Budget: ledger.Budget{Key: "namespace/" + pod.Namespace, Namespaces: []string{pod.Namespace}}, Quota: quota,
			PodUID: string(pod.UID), Name: pod.Name, Holding: holding, DryRun: *review.Request.DryRun,
		})
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: a.Decision == ledger.Admitted, Result: &metav1.Status{Code: http.StatusForbidden, Message: a.Reason}}
		if v := policies.QuotaViolation(a.Excess); v != nil {
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
		l := ledger.New(ledger.Options{Store: ledger.ClusterStore{Client: client, Namespace: system}, Lister: &ledger.ClusterLister{Client: client, HoldingOf: hold}})
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
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "quota.gpuslice.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: &effects, FailurePolicy: &fail,
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{CABundle: s.CA(), Service: &admissionregistrationv1.ServiceReference{Namespace: system, Name: "quota", Path: new("/")}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"quota": "held"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
	}}}
	if _, err := s.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
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
		if _, err := s.Client.CoreV1().Pods("team-a").Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil && ctx.Err() == nil {
			t.Logf("the webhook answers: %v", err)
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("the webhook was not called within 20 s")
		case <-poll.C:
		}
	}
}

func TestBurstOnAPIServer(t *testing.T) {
	for _, c := range []struct{ limit, want int }{{50, 50}, {1000, 600}} {
		t.Run(fmt.Sprintf("600 pods, 100 at a time, three replicas, room for %d", c.limit), func(t *testing.T) {
			s := cluster.ForTest(t, cluster.Options{})
			if err := errors.Join(s.Namespace(t.Context(), system, nil), s.Namespace(t.Context(), "team-a", map[string]string{"quota": "held"})); err != nil {
				t.Fatal(err)
			}
			ledgers := serve(t, s, s.Client, int64(c.limit))
			var admitted, strange atomic.Int64
			var running sync.WaitGroup
			places := make(chan struct{}, 100)
			begin := time.Now()
			for i := range 600 {
				places <- struct{}{}
				running.Go(func() {
					defer func() { <-places }()
					_, err := s.Client.CoreV1().Pods("team-a").Create(t.Context(), gpuPod(fmt.Sprintf("pod-%d", i)), metav1.CreateOptions{})
					if err == nil {
						admitted.Add(1)
					} else if !containsQuota(err) {
						strange.Add(1)
						t.Log(err)
					}
				})
			}
			running.Wait()
			took := time.Since(begin)
			var all ledger.Counts
			for _, l := range ledgers {
				n := l.Counts()
				all.Requests, all.Writes, all.Conflicts, all.Lists, all.Gets = all.Requests+n.Requests, all.Writes+n.Writes, all.Conflicts+n.Conflicts, all.Lists+n.Lists, all.Gets+n.Gets
			}
			t.Logf("%d admitted in %v; %+v", admitted.Load(), took, all)
			if int(admitted.Load()) != c.want || strange.Load() > 0 {
				t.Errorf("%d admitted, %d answers that are neither yes nor for want of quota; want %d and none", admitted.Load(), strange.Load(), c.want)
			}
		})
	}
}

func containsQuota(err error) bool {
	return strings.Contains(err.Error(), "exceeded quota: team-a, requested: gpus=1")
}

package budgets

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/clustertest"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/watcher"
	"github.com/gpuslice/gpuslice/webhook/ledger"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
)

// ledgerStub answers every request alike, and remembers them.
type ledgerStub struct {
	answer   ledger.Answer
	state    ledger.State
	err      error // of Read
	requests []ledger.Request
}

func (l *ledgerStub) Reserve(_ context.Context, r ledger.Request) ledger.Answer {
	l.requests = append(l.requests, r)
	return l.answer
}

func (l *ledgerStub) Read(context.Context, string) (ledger.State, error) { return l.state, l.err }

// start watches a cluster in a synctest bubble until end is called.
func start(t *testing.T, client *fake.Clientset) (w *watcher.Watcher, end func()) {
	t.Helper()
	w, err := watcher.New(watcher.Options{Client: client, Namespace: api.SystemNamespace,
		Metrics: metrics.New("test"), Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return w, clustertest.Run(t, w.Run)
}

// gpuQuota is a ResourceQuota of somebody else's on nvidia.com/gpu.
func gpuQuota(namespace, hard string, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace + "-gpus"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse(hard)}, Scopes: scopes}}
}

// renamedPod is what team-a's pod for one GPU becomes, and its Promise.
func renamedPod(t *testing.T, in policies.Input) (*corev1.Pod, *promise.Promise) {
	t.Helper()
	one := corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
	in.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace.Name, Name: "train"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{
			{Name: "main", Image: "pytorch/pytorch:2.4.0", Resources: corev1.ResourceRequirements{Limits: one, Requests: one}},
		}}}
	d := policies.Decide(in)
	if d.Promise == nil {
		t.Fatalf("%+v", d)
	}
	return podedit.Apply(d.Promise, in.Pod), d.Promise
}

func TestCheckerNativeQuotas(t *testing.T) {
	const exceeded = "exceeded quota: team-a-gpus (ResourceQuota), requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2 (requests.nvidia.com/gpu left: 0)"
	over := ledger.Answer{Decision: ledger.Exceeded, Excess: []quota.Excess{
		{Quota: "team-a-gpus (ResourceQuota)", Dimension: "requests.nvidia.com/gpu", Requested: "1",
			Used: "2", Limited: "2", Left: "0", Native: true}}}
	for name, c := range map[string]struct {
		policy   string
		quota    *corev1.ResourceQuota
		answer   ledger.Answer
		limits   int
		message  string
		warnings []string
		again    bool
	}{
		"room": {"", gpuQuota("team-a", "2"), ledger.Answer{Decision: ledger.Admitted}, 1, "",
			[]string{"ResourceQuota team-a-gpus counts nvidia.com/gpu; gpuslice counts this pod for it"}, false},
		"no room":             {"", gpuQuota("team-a", "2"), over, 1, exceeded, nil, false},
		"no room, under warn": {"enforcementMode: warn", gpuQuota("team-a", "2"), over, 1, exceeded, nil, false},
		"busy under warn": {"enforcementMode: warn", gpuQuota("team-a", "2"),
			ledger.Answer{Decision: ledger.Busy, Reason: "busy"}, 1, "", nil, true},
		"beside a quota of ours":    {"quota: {slices: 4}", gpuQuota("team-a", "2"), over, 2, exceeded, nil, false},
		"another namespace's quota": {"", gpuQuota("team-b", "2"), over, 0, "", nil, false},
		"off": {"quota: {native: \"off\"}", gpuQuota("team-a", "2"), over, 0, "",
			[]string{"ResourceQuota team-a-gpus counts nvidia.com/gpu, which this pod does not name; policy has it not counted"}, false},
		"a scope that is not read": {"", gpuQuota("team-a", "2", corev1.ResourceQuotaScopeCrossNamespacePodAffinity), over, 0, "",
			[]string{"ResourceQuota team-a-gpus counts nvidia.com/gpu, which this pod does not name; it is not counted: gpuslice does not read its scope CrossNamespacePodAffinity"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(clustertest.Namespace("team-a", nil),
					clustertest.Namespace("team-b", nil), clustertest.SharedL4(t, "l4"), c.quota,
					clustertest.PolicyMap("default", 10, "mode: transparent\ndefaultSlice: {class: replica}\n"+c.policy))
				w, end := start(t, client)
				defer end()
				in, err := w.Input(t.Context(), "team-a")
				if err != nil || in.Policy == nil {
					t.Fatalf("%+v, %v", in, err)
				}
				pod, promised := renamedPod(t, in)
				in.Pod = pod
				stub := &ledgerStub{answer: c.answer}
				checker := Checker{Reserver: stub, Budgets: NewBudgets(w), Metrics: metrics.New("test")}
				d, again := checker.Reserve(t.Context(), Pod{Input: in, Promise: promised}, policies.Decision{Outcome: policies.Unchanged})
				limits := 0
				if len(stub.requests) > 0 {
					limits = len(stub.requests[0].Quota.Limits)
				}
				if limits != c.limits || (again != nil) != c.again || d.Message() != c.message {
					t.Errorf("held against %d limits, to be asked again: %t, %q", limits, again != nil, d.Message())
				}
				if c.message == "" && !c.again {
					if diff := cmp.Diff(c.warnings, d.Warnings); diff != "" {
						t.Errorf("warnings (-want +got)\n%s", diff)
					}
				}
			})
		})
	}
}

func TestQuotaStatuses(t *testing.T) {
	t.Run("are reported and exported", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.Namespace("team-b", nil),
				clustertest.Namespace("team-c", nil), clustertest.Namespace("other", nil), clustertest.SharedL4(t, "l4"),
				gpuQuota("team-a", "2"), gpuQuota("team-b", "2"), gpuQuota("other", "2"),
				clustertest.PolicyMap("a", 10, "namespaces: {names: [team-a]}"),
				clustertest.PolicyMap("b", 11, "namespaces: {names: [team-b]}\nquota: {native: \"off\"}"),
				clustertest.PolicyMap("c", 12, "namespaces: {names: [team-c]}\nquota: {slices: 4}"))
			w, end := start(t, client)
			defer end()
			want := []nativequota.QuotaStatus{
				{Namespace: "team-a", Name: "team-a-gpus", Resource: api.ResourceGPU, State: nativequota.StateCounted},
				{Namespace: "team-b", Name: "team-b-gpus", Resource: api.ResourceGPU, State: nativequota.StateUncounted,
					Reason: "policy gpuslice-system/b does not count it"},
			}
			if diff := cmp.Diff(want, w.StateReport().ResourceQuotas); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			registry := prometheus.NewRegistry()
			if err := nativequota.RegisterMetrics(registry, w.QuotaStatuses); err != nil {
				t.Fatal(err)
			}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			var series []string
			for _, f := range families {
				if f.GetName() == "gpuslice_native_quota_info" {
					for _, m := range f.GetMetric() {
						var values []string
						for _, l := range m.GetLabel() {
							values = append(values, l.GetValue())
						}
						series = append(series, strings.Join(values, " "))
					}
				}
			}
			if diff := cmp.Diff([]string{"team-a-gpus team-a nvidia.com/gpu counted",
				"team-b-gpus team-b nvidia.com/gpu uncounted"}, series); diff != "" {
				t.Errorf("metric (-want +got)\n%s", diff)
			}
			// A namespace that nothing but a ResourceQuota limits is looked after like the others.
			var keys []string
			for _, b := range NewBudgets(w).All() {
				keys = append(keys, b.Key)
			}
			slices.Sort(keys)
			if diff := cmp.Diff([]string{"namespace/team-a", "namespace/team-c"}, keys); diff != "" {
				t.Errorf("budgets (-want +got)\n%s", diff)
			}
		})
	})
}

func TestResourceQuotas(t *testing.T) {
	t.Run("are followed as they change", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil))
			w, end := start(t, client)
			defer end()
			quotas := client.CoreV1().ResourceQuotas("team-a")
			hard := func() (out []int64) {
				time.Sleep(time.Second)
				synctest.Wait()
				for _, n := range w.ResourceQuotas().In("team-a") {
					out = append(out, n.Hard)
				}
				return out
			}
			q := gpuQuota("team-a", "2")
			if _, err := quotas.Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			before := hard()
			q.Spec.Hard["requests.nvidia.com/gpu"] = resource.MustParse("3")
			if _, err := quotas.Update(t.Context(), q, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			after := hard()
			if err := quotas.Delete(t.Context(), q.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]int64{{2}, {3}, nil}, [][]int64{before, after, hard()}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	})
}

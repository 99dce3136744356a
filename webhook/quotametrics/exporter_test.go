package quotametrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// office is Accounts in a synctest bubble, and what they are told of the cluster.
type office struct {
	*Exporter
	t        *testing.T
	registry *prometheus.Registry
	client   *fake.Clientset
	budgets  []ledger.Budget
	quotas   map[string]policies.Quota
	ready    error
	begun    int
	end      func()
}

func open(t *testing.T, objects ...*corev1.ConfigMap) *office {
	t.Helper()
	o := &office{t: t, registry: prometheus.NewRegistry(), client: fake.NewClientset(), quotas: map[string]policies.Quota{}}
	for _, m := range objects {
		if err := o.client.Tracker().Add(m); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	o.Exporter, err = New(Options{
		Client: o.client, Namespace: policies.SystemNamespace, Ready: func() error { return o.ready },
		Budgets: func() []ledger.Budget { return o.budgets }, Quotas: func() map[string]policies.Quota { return o.quotas },
		Started: func() { o.begun++ }, Registerer: o.registry, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	o.lead()
	return o
}

// lead begins a term, which o.end ends.
func (o *office) lead() {
	ctx, stop := context.WithCancel(o.t.Context())
	done := make(chan error)
	go func() { done <- o.Run(ctx) }()
	synctest.Wait()
	o.end = func() {
		stop()
		if err := <-done; err != nil {
			o.t.Error(err)
		}
	}
}

// budget adds a budget of these namespaces with a limit on memory.
func (o *office) budget(key string, limit policies.MiB, namespaces ...string) ledger.Budget {
	b := ledger.Budget{Key: key, Namespaces: namespaces}
	o.budgets = append(o.budgets, b)
	o.quotas[key] = policies.Quota{Limits: []policies.QuotaLimit{{Name: key, Limits: policies.QuotaLimits{Memory: &limit}}}}
	return b
}

// holds is a report that the namespaces hold so much memory each, in MiB.
func holds(b ledger.Budget, memory policies.MiB) ledger.Report {
	r := ledger.Report{Budget: b, State: ledger.State{Namespaces: b.Namespaces}}
	for _, n := range b.Namespaces {
		r.State.Base = append(r.State.Base, policies.Holding{Namespace: n, Charge: policies.Charge{Memory: memory, Slices: 1}})
	}
	return r
}

func (o *office) want(name, text string) {
	o.t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	all, err := o.registry.Gather()
	if err != nil {
		o.t.Fatal(err)
	}
	var got []string
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() != name {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			got = append(got, fmt.Sprintf("%s = %g", strings.Join(labels, " "), value))
		}
	}
	if have, want := strings.Join(got, "\n"), strings.TrimSpace(strings.Join(lines, "\n")); have != want {
		o.t.Errorf("%s:\n%s\nwant\n%s", name, have, want)
	}
}

// count is the number of a metric's series.
func (o *office) count(name string) int {
	all, err := o.registry.Gather()
	if err != nil {
		o.t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return len(f.GetMetric())
		}
	}
	return 0
}

func TestWhatIsReportedIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		defer func() { o.end() }()
		b := o.budget("namespace/team-a", 4096, "team-a")
		r := holds(b, 1024)
		r.State.Reservations = []ledger.Reservation{{PodUID: "1", Name: "p", Holding: policies.Holding{Namespace: "team-a", Charge: policies.Charge{Memory: 512}}}}
		o.Report(r)
		o.want("gpuslice_quota_limit", "namespace/team-a memory  = 4.294967296e+09")
		o.want("gpuslice_quota_used", "namespace/team-a memory  = 1.073741824e+09")
		o.want("gpuslice_quota_reserved", "namespace/team-a memory  = 5.36870912e+08")
		o.want("gpuslice_held", "gpus team-a = 0\nmemory team-a = 1.073741824e+09\nslices team-a = 1")
		o.want("gpuslice_unpromised_pods", "team-a = 0")
		if o.begun != 1 {
			t.Errorf("%d terms begun", o.begun)
		}
	})
}

func TestHeldBytesAddUpOverTimeAndNeverFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		defer func() { o.end() }()
		b := o.budget("namespace/team-a", 4096, "team-a")
		o.Report(holds(b, 1))
		time.Sleep(10 * time.Second)
		o.want("gpuslice_held_memory_byte_seconds_total", fmt.Sprintf("team-a = %g", 10.0*(1<<20)))
		o.Report(holds(b, 3))
		time.Sleep(10 * time.Second)
		o.want("gpuslice_held_memory_byte_seconds_total", fmt.Sprintf("team-a = %g", 40.0*(1<<20)))
		o.Report(ledger.Report{Budget: b, State: ledger.State{Namespaces: b.Namespaces}})
		time.Sleep(10 * time.Second)
		o.want("gpuslice_held_memory_byte_seconds_total", fmt.Sprintf("team-a = %g", 40.0*(1<<20)))

		// Into a shared budget: what was held stays counted.
		o.budgets = nil
		shared := o.budget("shared/ml", 4096, "team-a", "team-b")
		o.Report(holds(shared, 1))
		o.want("gpuslice_held_memory_byte_seconds_total", fmt.Sprintf("team-a = %g\nteam-b = 0", 40.0*(1<<20)))
	})
}

func TestSeriesVanishWithBudgetNamespaceAndLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		defer func() { o.end() }()
		a, b := o.budget("namespace/team-a", 1, "team-a"), o.budget("shared/ml", 1, "team-b", "team-c")
		o.Report(holds(a, 1))
		o.Report(holds(b, 1))
		o.want("gpuslice_unpromised_pods", "team-a = 0\nteam-b = 0\nteam-c = 0")
		b.Namespaces = []string{"team-b"}
		o.budgets = []ledger.Budget{b}
		delete(o.quotas, a.Key)
		o.want("gpuslice_unpromised_pods", "team-b = 0")
		o.want("gpuslice_quota_limit", "shared/ml memory  = 1.048576e+06")
		o.end()
		o.want("gpuslice_unpromised_pods", "")
		o.want("gpuslice_quota_limit", "")
		o.Report(holds(b, 1))
		o.lead()
		o.want("gpuslice_quota_limit", "") // what was reported to one that does not lead is forgotten
	})
}

func TestATenantsOwnLimitIsToldUnderItsNamespaceAndTheSmallerOneHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		defer func() { o.end() }()
		two := int64(2)
		own := func(namespace string) policies.QuotaLimit {
			return policies.QuotaLimit{Name: namespace + "/gpuslice-policy", Scope: policies.QuotaScope{Namespace: namespace}, Limits: policies.QuotaLimits{Slices: &two}}
		}
		shared, alone := o.budget("shared/ml", 1024, "team-a", "team-b"), o.budget("namespace/team-c", 1024, "team-c")
		nine := int64(9)
		for key, l := range map[string]policies.QuotaLimit{shared.Key: own("team-a"), alone.Key: own("team-c")} {
			q := o.quotas[key]
			q.Limits[0].Limits.Slices = &nine
			q.Limits = append(q.Limits, l)
			o.quotas[key] = q
		}
		o.Report(holds(shared, 1))
		o.Report(holds(alone, 1))
		o.want("gpuslice_quota_limit", `namespace/team-a slices  = 2
			namespace/team-c memory  = 1.073741824e+09
			namespace/team-c slices  = 2
			shared/ml memory  = 1.073741824e+09
			shared/ml slices  = 9`)
		o.want("gpuslice_quota_used", `namespace/team-a slices  = 1
			namespace/team-c memory  = 1.048576e+06
			namespace/team-c slices  = 1
			shared/ml memory  = 2.097152e+06
			shared/ml slices  = 2`)
	})
}

func TestSeriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		defer func() { o.end() }()
		for i := range maxFigures + 10 {
			name := fmt.Sprintf("n-%05d", i)
			o.Report(holds(o.budget("namespace/"+name, 1, name), 1))
		}
		for name, want := range map[string]int{"gpuslice_quota_limit": maxFigures, "gpuslice_unpromised_pods": maxNamespaces, "gpuslice_held_memory_byte_seconds_total": maxNamespaces} {
			if n := o.count(name); n != want {
				t.Errorf("%s: %d series", name, n)
			}
		}
	})
}

// strangersOf are pods without a promise.
func strangersOf(n int) (all []ledger.Pod) {
	for i := range n {
		all = append(all, ledger.Pod{UID: fmt.Sprint("uid-", i), Name: fmt.Sprint("p-", i), Unmanaged: true,
			Holding: policies.Holding{Namespace: "team-a", Charge: policies.Charge{Memory: 24576, GPUs: 1}}})
	}
	return all
}

func TestEachStrangerIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open(t)
		defer func() { o.end() }()
		r := holds(o.budget("namespace/team-a", 1, "team-a"), 1)
		r.Unmanaged = strangersOf(waiting + 50)
		for range 10 { // those for whom there was no room are met again
			o.Report(r)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		o.want("gpuslice_unpromised_pods", fmt.Sprintf("team-a = %d", waiting+50))
		events, err := o.client.CoreV1().Events("team-a").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(events.Items) != waiting+50 {
			t.Fatalf("%d events, %v", len(events.Items), err)
		}
		e := events.Items[0]
		if e.Reason != ReasonNotReviewed || e.Type != corev1.EventTypeWarning || e.InvolvedObject.Kind != "Pod" || !strings.Contains(e.Message, "whole devices (memory 24Gi, gpus 1); delete it") {
			t.Errorf("%+v", e)
		}
		creates := 0
		for _, a := range o.client.Actions() {
			if a.Matches("create", "events") {
				creates++
			}
		}
		if creates != waiting+50 {
			t.Errorf("%d events were tried", creates)
		}
	})
}

func ledgerOf(key, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: policies.SystemNamespace, Name: ledger.ObjectName(key), UID: types.UID(key), ResourceVersion: version,
		Labels: map[string]string{ledger.Label: "true"}}, Data: map[string]string{"budget": key}}
}

func (o *office) ledgers() (keys []string) {
	list, err := o.client.CoreV1().ConfigMaps(policies.SystemNamespace).List(o.t.Context(), metav1.ListOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	for _, m := range list.Items {
		keys = append(keys, m.Name)
	}
	return keys
}

func TestALedgerWithoutABudgetGoesAfterAnHourAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, kept, used := ledgerOf("namespace/gone", "1"), ledgerOf("namespace/team-a", "1"), ledgerOf("namespace/used", "1")
		policy := ledgerOf("x", "1")
		policy.Name = "team-a"
		o := open(t, gone, kept, used, policy)
		defer func() { o.end() }()
		o.ready = errors.New("not read yet")
		time.Sleep(3 * unusedTTL)
		if n := len(o.ledgers()); n != 4 {
			t.Fatalf("%d are left while budgets are not known", n)
		}
		o.ready = nil
		o.budget("namespace/team-a", 1, "team-a")
		time.Sleep(unusedTTL - 2*sweepPeriod)
		used = used.DeepCopy()
		used.ResourceVersion = "2"
		if err := o.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), used, used.Namespace); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * sweepPeriod)
		if got := strings.Join(o.ledgers(), " "); strings.Contains(got, gone.Name) || !strings.Contains(got, kept.Name) || !strings.Contains(got, used.Name) || !strings.Contains(got, "team-a") {
			t.Errorf("left: %s", got)
		}
		time.Sleep(unusedTTL)
		if got := o.ledgers(); len(got) != 2 {
			t.Errorf("left: %s", got)
		}
		for _, a := range o.client.Actions() {
			if a.Matches("delete", "configmaps") {
				p := a.(interface{ GetDeleteOptions() metav1.DeleteOptions }).GetDeleteOptions().Preconditions
				if p == nil || p.UID == nil || p.ResourceVersion == nil {
					t.Errorf("removed without naming what was looked at: %+v", p)
				}
			}
		}
	})
}

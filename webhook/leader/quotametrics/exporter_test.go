package quotametrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// fixture is an Exporter in a synctest bubble, with the budgets and quotas that it reads.
type fixture struct {
	*Exporter
	t        *testing.T
	registry *prometheus.Registry
	client   *fake.Clientset
	quotas   map[string]quota.Quota
	started  int
	end      func()

	mu      sync.Mutex // guards what Run reads
	budgets []ledger.Budget
	ready   error
}

func open(t *testing.T, objects ...*corev1.ConfigMap) *fixture {
	t.Helper()
	f := &fixture{t: t, registry: prometheus.NewRegistry(), client: fake.NewClientset(), quotas: map[string]quota.Quota{}}
	for _, m := range objects {
		if err := f.client.Tracker().Add(m); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	f.Exporter, err = New(Options{
		Client: f.client, Namespace: api.SystemNamespace, Ready: func() error { return read(f, &f.ready) },
		Budgets: func() []ledger.Budget { return read(f, &f.budgets) }, Quotas: func() map[string]quota.Quota { return f.quotas },
		Started: func() { f.started++ }, Registerer: f.registry, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.lead()
	return f
}

// read returns a field of f, under the lock.
func read[T any](f *fixture, field *T) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *field
}

// change calls do, which changes fields of f, under the lock.
func (f *fixture) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// lead starts Run, which f.end ends.
func (f *fixture) lead() {
	ctx, stop := context.WithCancel(f.t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	synctest.Wait()
	f.end = func() {
		stop()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	}
}

// budget adds a budget of these namespaces with a limit on memory.
func (f *fixture) budget(key string, limit api.MiB, namespaces ...string) ledger.Budget {
	b := ledger.Budget{Key: key, Namespaces: namespaces}
	f.change(func() { f.budgets = append(f.budgets, b) })
	f.quotas[key] = quota.Quota{Limits: []quota.Limit{{Name: key, Limits: quota.Limits{Memory: &limit}}}}
	return b
}

// holds is a report that the namespaces hold so much memory each, in MiB.
func holds(b ledger.Budget, memory api.MiB) ledger.Report {
	r := ledger.Report{Budget: b, State: ledger.State{Namespaces: b.Namespaces}}
	for _, n := range b.Namespaces {
		r.State.Base = append(r.State.Base, quota.Holding{Namespace: n, Charge: quota.Charge{Memory: memory, Slices: 1}})
	}
	return r
}

func (f *fixture) want(name, text string) {
	f.t.Helper()
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	all, err := f.registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	var got []string
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() != name {
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
		f.t.Errorf("%s:\n%s\nwant\n%s", name, have, want)
	}
}

// count is the number of a metric's series.
func (f *fixture) count(name string) int {
	all, err := f.registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() == name {
			return len(family.GetMetric())
		}
	}
	return 0
}

func TestExporter(t *testing.T) {
	t.Run("a report becomes series", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := open(t)
			defer func() { f.end() }()
			b := f.budget("namespace/team-a", 4096, "team-a")
			r := holds(b, 1024)
			r.State.Reservations = []ledger.Reservation{
				{PodUID: "1", Name: "p", Holding: quota.Holding{Namespace: "team-a", Charge: quota.Charge{Memory: 512}}},
			}
			f.Report(r)
			f.want("gpuslice_quota_limit", "namespace/team-a memory  = 4.294967296e+09")
			f.want("gpuslice_quota_used", "namespace/team-a memory  = 1.073741824e+09")
			f.want("gpuslice_quota_reserved", "namespace/team-a memory  = 5.36870912e+08")
			f.want("gpuslice_namespace_charge", "devices team-a = 0\ngpus team-a = 0\nmemory team-a = 1.073741824e+09\nslices team-a = 1")
			f.want("gpuslice_unmanaged_pods", "team-a = 0")
			if f.started != 1 {
				t.Errorf("%d terms started", f.started)
			}
		})
	})
	t.Run("byte-seconds add up over time and never fall", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := open(t)
			defer func() { f.end() }()
			b := f.budget("namespace/team-a", 4096, "team-a")
			f.Report(holds(b, 1))
			time.Sleep(10 * time.Second)
			f.want("gpuslice_namespace_charged_memory_byte_seconds_total", fmt.Sprintf("team-a = %g", 10.0*(1<<20)))
			f.Report(holds(b, 3))
			time.Sleep(10 * time.Second)
			f.want("gpuslice_namespace_charged_memory_byte_seconds_total", fmt.Sprintf("team-a = %g", 40.0*(1<<20)))
			f.Report(ledger.Report{Budget: b, State: ledger.State{Namespaces: b.Namespaces}})
			time.Sleep(10 * time.Second)
			f.want("gpuslice_namespace_charged_memory_byte_seconds_total", fmt.Sprintf("team-a = %g", 40.0*(1<<20)))

			// Into a shared budget: what was held stays counted.
			f.change(func() { f.budgets = nil })
			shared := f.budget("shared/ml", 4096, "team-a", "team-b")
			f.Report(holds(shared, 1))
			f.want("gpuslice_namespace_charged_memory_byte_seconds_total", fmt.Sprintf("team-a = %g\nteam-b = 0", 40.0*(1<<20)))
		})
	})
	t.Run("series end with the budget, the namespace and the lead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := open(t)
			defer func() { f.end() }()
			a, b := f.budget("namespace/team-a", 1, "team-a"), f.budget("shared/ml", 1, "team-b", "team-c")
			f.Report(holds(a, 1))
			f.Report(holds(b, 1))
			f.want("gpuslice_unmanaged_pods", "team-a = 0\nteam-b = 0\nteam-c = 0")
			b.Namespaces = []string{"team-b"}
			f.change(func() { f.budgets = []ledger.Budget{b} })
			delete(f.quotas, a.Key)
			f.want("gpuslice_unmanaged_pods", "team-b = 0")
			f.want("gpuslice_quota_limit", "shared/ml memory  = 1.048576e+06")
			f.end()
			f.want("gpuslice_unmanaged_pods", "")
			f.want("gpuslice_quota_limit", "")
			f.Report(holds(b, 1))
			f.lead()
			f.want("gpuslice_quota_limit", "") // what was reported to one that does not lead is forgotten
		})
	})
	t.Run("a tenant's own limit has its namespace, and the smaller limit wins", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := open(t)
			defer func() { f.end() }()
			two := int64(2)
			own := func(namespace string) quota.Limit {
				return quota.Limit{Name: namespace + "/gpuslice-policy", Scope: quota.Scope{Namespace: namespace}, Limits: quota.Limits{Slices: &two}}
			}
			shared, alone := f.budget("shared/ml", 1024, "team-a", "team-b"), f.budget("namespace/team-c", 1024, "team-c")
			nine := int64(9)
			for key, l := range map[string]quota.Limit{shared.Key: own("team-a"), alone.Key: own("team-c")} {
				q := f.quotas[key]
				q.Limits[0].Limits.Slices = &nine
				q.Limits = append(q.Limits, l)
				f.quotas[key] = q
			}
			f.Report(holds(shared, 1))
			f.Report(holds(alone, 1))
			f.want("gpuslice_quota_limit", `namespace/team-a slices  = 2
			namespace/team-c memory  = 1.073741824e+09
			namespace/team-c slices  = 2
			shared/ml memory  = 1.073741824e+09
			shared/ml slices  = 9`)
			f.want("gpuslice_quota_used", `namespace/team-a slices  = 1
			namespace/team-c memory  = 1.048576e+06
			namespace/team-c slices  = 1
			shared/ml memory  = 2.097152e+06
			shared/ml slices  = 2`)
		})
	})
	t.Run("series are bounded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := open(t)
			defer func() { f.end() }()
			for i := range maxFigures + 10 {
				name := fmt.Sprintf("n-%05d", i)
				f.Report(holds(f.budget("namespace/"+name, 1, name), 1))
			}
			for name, want := range map[string]int{"gpuslice_quota_limit": maxFigures, "gpuslice_unmanaged_pods": maxNamespaces,
				"gpuslice_namespace_charged_memory_byte_seconds_total": maxNamespaces} {
				if n := f.count(name); n != want {
					t.Errorf("%s: %d series", name, n)
				}
			}
		})
	})
}

// unmanagedPodsOf returns pods without a promise.
func unmanagedPodsOf(n int) (all []ledger.Pod) {
	for i := range n {
		all = append(all, ledger.Pod{UID: fmt.Sprint("uid-", i), Name: fmt.Sprint("p-", i), Unmanaged: true,
			Holding: quota.Holding{Namespace: "team-a", Charge: quota.Charge{Memory: 24576, GPUs: 1}}})
	}
	return all
}

func TestUnmanagedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t)
		defer func() { f.end() }()
		r := holds(f.budget("namespace/team-a", 1, "team-a"), 1)
		r.Unmanaged = unmanagedPodsOf(queueSize + 50)
		for range 10 { // those beyond the size of the queue are queued again
			f.Report(r)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		f.want("gpuslice_unmanaged_pods", fmt.Sprintf("team-a = %d", queueSize+50))
		events, err := f.client.CoreV1().Events("team-a").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(events.Items) != queueSize+50 {
			t.Fatalf("%d events, %v", len(events.Items), err)
		}
		e := events.Items[0]
		if e.Reason != ReasonNotReviewed || e.Type != corev1.EventTypeWarning || e.InvolvedObject.Kind != "Pod" ||
			!strings.Contains(e.Message, "whole devices (memory 24Gi, gpus 1); delete it") {
			t.Errorf("%+v", e)
		}
		creates := 0
		for _, a := range f.client.Actions() {
			if a.Matches("create", "events") {
				creates++
			}
		}
		if creates != queueSize+50 {
			t.Errorf("%d events were tried", creates)
		}
	})
}

func ledgerOf(key, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace,
		Name: ledger.ObjectName(key), UID: types.UID(key), ResourceVersion: version,
		Labels: map[string]string{ledger.Label: "true"}}, Data: map[string]string{"budget": key}}
}

func (f *fixture) ledgers() (keys []string) {
	list, err := f.client.CoreV1().ConfigMaps(api.SystemNamespace).List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, m := range list.Items {
		keys = append(keys, m.Name)
	}
	return keys
}

func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, kept, used := ledgerOf("namespace/gone", "1"), ledgerOf("namespace/team-a", "1"), ledgerOf("namespace/used", "1")
		policy := ledgerOf("x", "1")
		policy.Name = "team-a"
		f := open(t, gone, kept, used, policy)
		defer func() { f.end() }()
		f.change(func() { f.ready = errors.New("not read yet") })
		time.Sleep(3 * unusedTTL)
		if n := len(f.ledgers()); n != 4 {
			t.Fatalf("%d are left while budgets are not known", n)
		}
		f.change(func() { f.ready = nil })
		f.budget("namespace/team-a", 1, "team-a")
		time.Sleep(unusedTTL - 2*sweepPeriod)
		used = used.DeepCopy()
		used.ResourceVersion = "2"
		if err := f.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), used, used.Namespace); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * sweepPeriod)
		if got := strings.Join(f.ledgers(), " "); strings.Contains(got, gone.Name) || !strings.Contains(got, kept.Name) ||
			!strings.Contains(got, used.Name) || !strings.Contains(got, "team-a") {
			t.Errorf("left: %s", got)
		}
		time.Sleep(unusedTTL)
		if got := f.ledgers(); len(got) != 2 {
			t.Errorf("left: %s", got)
		}
		for _, a := range f.client.Actions() {
			if a.Matches("delete", "configmaps") {
				p := a.(interface{ GetDeleteOptions() metav1.DeleteOptions }).GetDeleteOptions().Preconditions
				if p == nil || p.UID == nil || p.ResourceVersion == nil {
					t.Errorf("removed without naming what was looked at: %+v", p)
				}
			}
		}
	})
}

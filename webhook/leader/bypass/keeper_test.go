package bypass

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
)

// lab is a cluster in memory with one namespace and a running Keeper, under the clock of a synctest bubble.
type lab struct {
	t        *testing.T
	client   *fake.Clientset
	registry *prometheus.Registry
}

func inLab(t *testing.T, f func(*lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", UID: "1", Labels: map[string]string{"team": "a"},
			Annotations: map[string]string{"note": "b"}}}
		l := &lab{t: t, client: fake.NewClientset(ns), registry: prometheus.NewRegistry()}
		namespaces := coreinformers.NewNamespaceInformer(l.client, 0, cache.Indexers{})
		k, err := New(Options{Client: l.client, Namespaces: namespaces, Registerer: l.registry, Log: logr.Discard()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		informed, ended := make(chan struct{}), make(chan error, 1)
		go func() { defer close(informed); namespaces.RunWithContext(ctx) }()
		go func() { ended <- k.Run(ctx) }()
		f(l)
		stop()
		<-informed
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := l.metrics(); len(got) > 0 {
			t.Errorf("metrics after Run: %v", got)
		}
	})
}

// pass lets time go by, and everything come to rest.
func (l *lab) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (l *lab) namespace() *corev1.Namespace {
	l.t.Helper()
	ns, err := l.client.CoreV1().Namespaces().Get(l.t.Context(), "team-a", metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return ns
}

// bypass writes a bypass; a zero time leaves its end out.
func (l *lab) bypass(until time.Time) {
	l.t.Helper()
	ns := l.namespace()
	ns.Labels[api.LabelBypass] = "true"
	for name, value := range (policies.Bypass{Until: until, Reason: "broken", By: "alice"}).Annotations() {
		if name != api.AnnotationBypassUntil || !until.IsZero() {
			ns.Annotations[name] = value
		}
	}
	if _, err := l.client.CoreV1().Namespaces().Update(l.t.Context(), ns, metav1.UpdateOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// events are the reasons and messages of the Events, sorted.
func (l *lab) events() (out []string) {
	l.t.Helper()
	list, err := l.client.CoreV1().Events("team-a").List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range list.Items {
		out = append(out, e.Reason+": "+e.Message)
	}
	slices.Sort(out)
	return out
}

// metrics are the series by name and namespace.
func (l *lab) metrics() map[string]float64 {
	l.t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			out[family.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return out
}

func TestKeeper(t *testing.T) {
	t.Run("a bypass ends by itself", func(t *testing.T) {
		inLab(t, func(l *lab) {
			until := time.Now().Add(30 * time.Minute)
			l.bypass(until)
			l.pass(29 * time.Minute)
			if _, ok := policies.BypassOf(l.namespace().Labels, nil); !ok {
				t.Fatal("it ended before its time")
			}
			if got := l.metrics(); got["gpuslice_bypass_info team-a"] != 1 ||
				got["gpuslice_bypass_end_timestamp_seconds team-a"] != float64(until.Unix()) {
				t.Errorf("metrics %v", got)
			}
			if got := l.events(); len(got) != 1 || !strings.HasPrefix(got[0], "GPUSliceBypassed: gpuslice denies nothing") ||
				!strings.HasSuffix(got[0], "by alice: broken") {
				t.Errorf("events: %q", got)
			}
			l.pass(time.Minute + syncPeriod)
			ns := l.namespace()
			if len(ns.Labels) != 1 || ns.Labels["team"] != "a" || len(ns.Annotations) != 1 || ns.Annotations["note"] != "b" {
				t.Errorf("left: labels %v, annotations %v", ns.Labels, ns.Annotations)
			}
			if got := l.metrics(); len(got) > 0 {
				t.Errorf("metrics %v", got)
			}
			if got := l.events(); len(got) != 2 || !strings.HasPrefix(got[0], "GPUSliceBypassEnded: ") {
				t.Errorf("events: %q", got)
			}
		})
	})
	t.Run("a bypass without an end gets one", func(t *testing.T) {
		// Setting the label by hand is all that an emergency needs.
		for name, until := range map[string]time.Duration{"no end": 0, "an end in a year": 365 * 24 * time.Hour} {
			t.Run(name, func(t *testing.T) {
				inLab(t, func(l *lab) {
					var end time.Time
					if until > 0 {
						end = time.Now().Add(until)
					}
					l.bypass(end)
					begin := time.Now()
					l.pass(2 * syncPeriod)
					b, _ := policies.BypassOf(l.namespace().Labels, l.namespace().Annotations)
					if got := b.Until.Sub(begin); got < policies.MaxBypass-syncPeriod || got > policies.MaxBypass+2*syncPeriod {
						t.Errorf("it ends after %v", got)
					}
					l.pass(policies.MaxBypass + syncPeriod)
					if _, ok := policies.BypassOf(l.namespace().Labels, nil); ok {
						t.Error("it does not end")
					}
				})
			})
		}
	})
	t.Run("a prolonged bypass does not end at its old time", func(t *testing.T) {
		inLab(t, func(l *lab) {
			l.bypass(time.Now().Add(time.Minute))
			l.pass(50 * time.Second)
			l.bypass(time.Now().Add(time.Hour))
			l.pass(30 * time.Minute)
			if _, ok := policies.BypassOf(l.namespace().Labels, nil); !ok {
				t.Error("it ended")
			}
			if got := l.events(); len(got) != 2 {
				t.Errorf("events: %q", got)
			}
		})
	})
}

package suggestions

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
	"github.com/gpuslice/gpuslice/webhook/governed"
)

// fixture is a cluster with workloads and what is recommended for them.
type fixture struct {
	*testing.T
	client   *fake.Clientset
	all      []advice.Recommendation
	policies map[string]*config.Policy // by namespace
}

// newFixture has the namespaces team-a, where sizes are suggested, and team-b, where they are not.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	on, off := &config.Policy{}, &config.Policy{}
	on.Sizing.Suggest = true
	return &fixture{T: t, client: fake.NewClientset(), policies: map[string]*config.Policy{"team-a": on, "team-b": off, "broken": nil}}
}

// recommend adds a Deployment with a slice of 16Gi, and the size of 6Gi and a verdict that is so old.
func (f *fixture) recommend(namespace, name string, v sizing.Verdict, age time.Duration) {
	f.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name)}}
	if _, err := f.client.AppsV1().Deployments(namespace).Create(f.Context(), d, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	f.all = append(f.all, advice.Recommendation{Container: advice.Container{Namespace: namespace,
		Owner: advice.Owner{Kind: "Deployment", Name: name}, Container: "main"},
		Verdict: v, Since: time.Now().Add(-age), Hours: 240, Slice: 16 << 10, Sizes: [len(advice.Coverages)]api.MiB{5000, 6100, 0}})
}

// lead runs a leader for so long.
func (f *fixture) lead(d time.Duration) {
	f.Helper()
	texts, _, err := advice.Encode(time.Now(), f.all)
	if err != nil {
		f.Fatal(err)
	}
	book, err := advice.Decode(texts)
	if err != nil {
		f.Fatal(err)
	}
	w := New(Options{Client: f.client, Advice: func() *advice.Book { return book }, Log: logr.Discard(),
		Governed: func() (all []governed.Namespace, err error) {
			for name, p := range f.policies {
				all = append(all, governed.Namespace{Name: name, Policy: p})
			}
			return all, nil
		}})
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(period) {
		w.pass(f.Context())
	}
}

// events are the Events that are there, as "Deployment/web GPUSliceAtRisk".
func (f *fixture) events() (out []string) {
	f.Helper()
	list, err := f.client.CoreV1().Events("").List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range list.Items {
		out = append(out, fmt.Sprintf("%s/%s %s %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message))
	}
	return out
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		namespace string
		verdict   sizing.Verdict
		age, lead time.Duration
		change    func(*fixture)
		want      int
		message   string
	}{
		{"over-requested for a week", "team-a", sizing.OverRequested, oversized, time.Hour, nil, 1,
			`GPUSliceOverRequested container main requests 16Gi of GPU memory, and 6Gi is enough by 240 hours of history: write the label gpuslice.dev/memory: "6Gi"`},
		{"over-requested for less", "team-a", sizing.OverRequested, oversized - 3*time.Hour, time.Hour, nil, 0, ""},
		{"for a week in an hour", "team-a", sizing.OverRequested, oversized - 3*time.Hour, 4 * time.Hour, nil, 1, ""},
		{"at risk at once", "team-a", sizing.AtRisk, 0, time.Hour, nil, 1,
			"GPUSliceAtRisk container main may exceed its slice of 16Gi: it came near it"},
		{"at risk, and more is enough", "team-a", sizing.AtRisk, 0, time.Hour, func(f *fixture) { f.all[0].Slice = 4096 },
			1, `slice of 4Gi: 240 hours of history recommend 6Gi; write the label gpuslice.dev/memory: "6Gi"`},
		{"once a day while it lasts", "team-a", sizing.AtRisk, 0, 70 * time.Hour, nil, 3, ""},
		{"right", "team-a", sizing.Right, oversized, time.Hour, nil, 0, ""},
		{"what rounding costs takes all of it", "team-a", sizing.OverRequested, oversized, time.Hour,
			func(f *fixture) { f.all[0].Slice = 6 << 10 }, 0, ""},
		{"where policy does not suggest", "team-b", sizing.AtRisk, 0, time.Hour, nil, 0, ""},
		{"where the policy cannot be read", "broken", sizing.AtRisk, 0, time.Hour, nil, 0, ""},
		{"of a workload that is gone", "team-a", sizing.AtRisk, 0, time.Hour, func(f *fixture) { f.all[0].Name = "gone" }, 0, ""},
		{"of a kind that gpuslice may not read", "team-a", sizing.AtRisk, 0, time.Hour, func(f *fixture) { f.all[0].Kind = "RayCluster" }, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t)
				f.recommend(tt.namespace, "web", tt.verdict, tt.age)
				if tt.change != nil {
					tt.change(f)
				}
				f.lead(tt.lead)
				got := f.events()
				if len(got) != tt.want || tt.want > 0 && !strings.Contains(got[0], tt.message) {
					t.Errorf("%d Events %q, want %d with %q", len(got), got, tt.want, tt.message)
				}
			})
		})
	}
}

// TestSuggestionsOfTwoLeaders: another leader does not write the Event again.
func TestSuggestionsOfTwoLeaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.recommend("team-a", "web", sizing.AtRisk, 0)
		f.lead(20 * time.Minute)
		f.lead(10 * time.Hour)
		if got := f.events(); len(got) != 1 {
			t.Errorf("%d Events: %q", len(got), got)
		}
	})
}

// TestSuggestionsAreBounded: a namespace with many workloads does not keep others from theirs, and all have theirs in the end.
func TestSuggestionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.policies["team-b"] = f.policies["team-a"]
		f.recommend("team-b", "web", sizing.AtRisk, 0)
		for i := range 50 {
			f.recommend("team-a", fmt.Sprint("web-", i), sizing.AtRisk, 0)
		}
		f.lead(time.Minute)
		if got := f.events(); len(got) != maxOfNamespace+1 {
			t.Errorf("%d Events in a pass", len(got))
		}
		f.lead(time.Hour)
		if got := f.events(); len(got) != 51 {
			t.Errorf("%d Events in an hour", len(got))
		}
	})
}

// TestSuggestionsOfManyNamespaces: where a pass has more than its Events, the namespaces without a turn come first in the next one.
func TestSuggestionsOfManyNamespaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for n := range 14 {
			namespace := fmt.Sprintf("many-%02d", n)
			f.policies[namespace] = f.policies["team-a"]
			for i := range 2 * maxOfNamespace {
				f.recommend(namespace, fmt.Sprint("web-", i), sizing.AtRisk, 0)
			}
		}
		f.lead(2 * period)
		count := map[string]int{}
		list, err := f.client.CoreV1().Events("").List(f.Context(), metav1.ListOptions{})
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range list.Items {
			count[e.Namespace]++
		}
		for n := range 14 {
			if namespace := fmt.Sprintf("many-%02d", n); count[namespace] == 0 {
				t.Errorf("%s has no Event of %d in two passes: %v", namespace, len(list.Items), count)
			}
		}
	})
}

// TestSuggestionsBeforeSnapshot: nothing is written before policies are read, nor without recommendations.
func TestSuggestionsBeforeSnapshot(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	for _, governs := range []governed.Source{
		func() ([]governed.Namespace, error) { return nil, errors.New("not read yet") },
		func() ([]governed.Namespace, error) {
			p := &config.Policy{}
			p.Sizing.Suggest = true
			return []governed.Namespace{{Name: "team-a", Policy: p}}, nil
		},
	} {
		New(Options{Client: client, Advice: func() *advice.Book { return nil }, Governed: governs, Log: logr.Discard()}).pass(t.Context())
	}
	if list, err := client.CoreV1().Events(corev1.NamespaceAll).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d Events, %v", len(list.Items), err)
	}
}

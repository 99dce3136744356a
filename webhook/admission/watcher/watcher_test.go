package watcher

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/clustertest"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
)

const system = api.SystemNamespace

// replica is a Watcher that runs in a synctest bubble until end is called.
type replica struct {
	*Watcher
	end func()
}

func newWatcher(t *testing.T, client *fake.Clientset) *Watcher {
	t.Helper()
	w, err := New(Options{Client: client, Namespace: system, Metrics: metrics.New("test"), Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func start(t *testing.T, client *fake.Clientset) *replica {
	t.Helper()
	w := newWatcher(t, client)
	return &replica{Watcher: w, end: clustertest.Run(t, w.Run)}
}

// scrape returns the replica's metrics as text.
func (r *replica) scrape() string {
	w := httptest.NewRecorder()
	r.options.Metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// policyOf is the policy that governs a namespace, as a test says it: its name, "error: ..." or "none".
func (r *replica) policyOf(t *testing.T, name string) string {
	t.Helper()
	in, err := r.Input(t.Context(), name)
	switch {
	case err != nil:
		return "unread: " + err.Error()
	case in.PolicyError != nil:
		return "error: " + in.PolicyError.Error()
	case in.Policy == nil:
		return "none"
	}
	return in.Policy.Name + " " + string(in.Policy.Mode)
}

// write updates a policy ConfigMap and waits until it is in force.
func write(t *testing.T, client *fake.Clientset, m *corev1.ConfigMap) {
	t.Helper()
	if _, err := client.CoreV1().ConfigMaps(system).Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.Settle()
}

func TestWatcher(t *testing.T) {
	t.Run("policies come into force as they are written", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.Namespace("team-b", map[string]string{"gpu": "yes"}),
				clustertest.PolicyMap("default", 10, "mode: opt-in"),
				clustertest.PolicyMap("a", 11, "namespaces: {names: [team-a]}\nmode: transparent\ndefaultSlice: {memory: 4Gi}"),
				clustertest.PolicyMap("b", 12, `namespaces: {selector: {matchLabels: {gpu: "yes"}}}`+"\nmode: \"off\""))
			r := start(t, client)
			defer r.end()
			if err := r.Ready(); err != nil {
				t.Fatal(err)
			}
			for namespace, want := range map[string]string{
				"team-a": "gpuslice-system/a transparent", "team-b": "gpuslice-system/b off",
			} {
				if got := r.policyOf(t, namespace); got != want {
					t.Errorf("%s: %s, want %s", namespace, got, want)
				}
			}
			write(t, client, clustertest.PolicyMap("a", 13, "namespaces: {names: [team-a]}\nmode: opt-in"))
			if got := r.policyOf(t, "team-a"); got != "gpuslice-system/a opt-in" {
				t.Errorf("after an update: %s", got)
			}
			if err := client.CoreV1().ConfigMaps(system).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			clustertest.Settle()
			if got := r.policyOf(t, "team-a"); got != "gpuslice-system/default opt-in" {
				t.Errorf("after a deletion: %s", got)
			}
		})
	})
	t.Run("a heartbeat of a kubelet makes no snapshot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.SharedL4(t, "n1"))
			r := start(t, client)
			defer r.end()
			before := r.snapshot.Load()
			beat := clustertest.SharedL4(t, "n1")
			beat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
			if _, err := client.CoreV1().Nodes().Update(t.Context(), beat, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			clustertest.Settle()
			if r.snapshot.Load() != before {
				t.Error("a heartbeat made a snapshot")
			}
			beat.Status.Allocatable["nvidia.com/gpu.shared"] = resource.MustParse("0")
			if _, err := client.CoreV1().Nodes().Update(t.Context(), beat, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			clustertest.Settle()
			if r.snapshot.Load() == before {
				t.Error("a plugin that went away made no snapshot")
			}
		})
	})
}

func TestBrokenPolicy(t *testing.T) {
	t.Run("without a good version it concerns its namespaces only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			two := clustertest.PolicyMap("twokeys", 14, "mode: opt-in")
			two.Data["other.yaml"] = "x"
			for name, tt := range map[string]struct {
				broken *corev1.ConfigMap
				want   map[string]string // namespace -> beginning of what governs it, with a default policy beside
				alone  string            // the same for team-b without the default
			}{
				"a mistake in one field": {clustertest.PolicyMap("a", 11, "namespaces: {names: [team-a]}\nmode: nonsense"),
					map[string]string{"team-a": "error: policy gpuslice-system/a cannot be used", "team-b": "gpuslice-system/default"}, "none"},
				"a misspelt key": {clustertest.PolicyMap("a", 11, "namespace: {names: [team-a]}"),
					map[string]string{"team-a": "gpuslice-system/default", "team-b": "gpuslice-system/default"}, "error: policy gpuslice-system/a"},
				"no YAML": {clustertest.PolicyMap("a", 11, "{{"),
					map[string]string{"team-b": "gpuslice-system/default"}, "error: policy gpuslice-system/a"},
				"a selector that is none": {clustertest.PolicyMap("a", 11, "namespaces: {selector: {matchExpressions: [{key: x, operator: Perhaps}]}}"),
					map[string]string{"team-b": "gpuslice-system/default"}, "error: policy gpuslice-system/a"},
				"two keys": {two, map[string]string{"team-b": "gpuslice-system/default"}, "error: policy gpuslice-system/twokeys"},
				"a document of 1 MiB": {clustertest.PolicyMap("a", 11, strings.Repeat("#", 1<<20)),
					map[string]string{"team-b": "gpuslice-system/default"}, "error: policy gpuslice-system/a"},
			} {
				beside := start(t, fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.Namespace("team-b", nil), tt.broken,
					clustertest.PolicyMap("default", 10, "mode: opt-in")))
				for namespace, want := range tt.want {
					if got := beside.policyOf(t, namespace); !strings.HasPrefix(got, want) {
						t.Errorf("%s: %s is governed by %q, want %q", name, namespace, got, want)
					}
				}
				beside.end()
				alone := start(t, fake.NewClientset(clustertest.Namespace("team-b", nil), tt.broken))
				if got := alone.policyOf(t, "team-b"); !strings.HasPrefix(got, tt.alone) {
					t.Errorf("%s, without a default: team-b is governed by %q, want %q", name, got, tt.alone)
				}
				alone.end()
			}
		})
	})
}

func TestNamespacesGet(t *testing.T) {
	t.Run("a namespace younger than the cache is read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.PolicyMap("default", 10, "mode: opt-in"))
			r := start(t, client)
			defer r.end()
			client.PrependReactor("get", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
				name := a.(clienttesting.GetAction).GetName()
				if name != "young" {
					return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
				}
				return true, clustertest.Namespace(name, nil), nil
			})
			if got := r.policyOf(t, "young"); got != "gpuslice-system/default opt-in" {
				t.Errorf("young: %s", got)
			}
			if got := r.policyOf(t, "absent"); !strings.HasPrefix(got, "unread: read namespace absent") {
				t.Errorf("absent: %s", got)
			}
		})
	})
}

func TestWatcherInput(t *testing.T) {
	t.Run("there is none before the first snapshot", func(t *testing.T) {
		t.Parallel()
		c := newWatcher(t, fake.NewClientset())
		if _, err := c.Input(t.Context(), "team-a"); err == nil || c.Ready() == nil {
			t.Errorf("input: %v, ready: %v", err, c.Ready())
		}
	})
}

// TestNodesRest: a wave of changes of nodes makes no new snapshot before the one before has rested; a policy does at once.
func TestNodesRest(t *testing.T) {
	t.Parallel()
	await := func(w *Watcher, rested <-chan time.Time) <-chan bool {
		changed := make(chan bool, 1)
		go func() { changed <- w.awaitChange(t.Context(), nil, rested) }()
		return changed
	}
	w := &Watcher{changed: make(chan struct{}, 1), nodesChanged: make(chan struct{}, 1)}
	w.nodesChanged <- struct{}{}
	rested := make(chan time.Time)
	changed := await(w, rested)
	select {
	case rested <- time.Now(): // it waits for that
	case <-changed:
		t.Fatal("a node's change did not wait")
	}
	if !<-changed {
		t.Error("a node's change was forgotten")
	}
	w.changed <- struct{}{}
	if !<-await(w, nil) {
		t.Error("a policy's change waits")
	}
}

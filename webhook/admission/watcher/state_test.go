package watcher

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/test/clustertest"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

func TestLastGoodPolicy(t *testing.T) {
	t.Run("survives restarts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil),
				clustertest.PolicyMap("a", 10, "namespaces: {names: [team-a]}\nmode: transparent\ndefaultSlice: {memory: 4Gi}"))
			first := start(t, client)
			write(t, client, clustertest.PolicyMap("a", 11, "namespaces: {names: [team-a]}\nmode: nonsense"))
			const want = "gpuslice-system/a transparent"
			if got := first.policyOf(t, "team-a"); got != want {
				t.Errorf("the replica that saw both: %s", got)
			}
			if line := `gpuslice_policy_broken{last_good="true",policy="gpuslice-system/a"} 1`; !strings.Contains(first.scrape(), line) {
				t.Error("the metric does not show it")
			}
			first.end()
			second := start(t, client)
			defer second.end()
			if got := second.policyOf(t, "team-a"); got != want {
				t.Errorf("a replica that starts afterwards: %s", got)
			}
			write(t, client, clustertest.PolicyMap("a", 12, "namespaces: {names: [team-a]}\nmode: opt-in"))
			if got := second.policyOf(t, "team-a"); got != "gpuslice-system/a opt-in" {
				t.Errorf("corrected: %s", got)
			}
			if strings.Contains(second.scrape(), "gpuslice_policy_broken{") {
				t.Error("the metric still shows it")
			}
		})
	})
}

func TestSavedPools(t *testing.T) {
	t.Run("outlive their nodes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil),
				clustertest.PolicyMap("default", 10, "mode: opt-in"), clustertest.SharedL4(t, "n1"))
			first := start(t, client)
			before := poolNames(t, first)
			if len(before) != 1 {
				t.Fatalf("pools %q", before)
			}
			if err := client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			clustertest.Settle()
			if after := poolNames(t, first); !slices.Equal(before, after) {
				t.Errorf("after the last node went: %q", after)
			}
			if line := `gpuslice_pools{source="remembered",strategy="time-slicing"} 1`; !strings.Contains(first.scrape(), line) {
				t.Error("the metric does not show it")
			}
			first.end()
			second := start(t, client)
			defer second.end()
			if after := poolNames(t, second); !slices.Equal(before, after) {
				t.Errorf("after a restart: %q", after)
			}
		})
	})
}

func TestForgottenPools(t *testing.T) {
	t.Run("a pool without a node ends after a day, without any event", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil),
				clustertest.PolicyMap("default", 10, "mode: opt-in"), clustertest.SharedL4(t, "n1"))
			r := start(t, client)
			defer r.end()
			if err := client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(23 * time.Hour) // of the test's clock
			if left := poolNames(t, r); len(left) != 1 {
				t.Errorf("after 23 hours: %q", left)
			}
			time.Sleep(2 * time.Hour)
			if left := poolNames(t, r); len(left) != 0 {
				t.Errorf("after 25 hours: %q", left)
			}
		})
	})
}

func poolNames(t *testing.T, r *replica) []string {
	t.Helper()
	in, err := r.Input(t.Context(), "team-a")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range in.Pools {
		names = append(names, p.Name)
	}
	return names
}

func TestWatcherSave(t *testing.T) {
	t.Run("state that cannot be saved is tried again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.PolicyMap("default", 10, "mode: opt-in"))
			var failing atomic.Bool
			failing.Store(true)
			client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return failing.Load(), nil, errors.New("etcd is away")
			})
			r := start(t, client)
			defer r.end()
			if got := r.policyOf(t, "team-a"); got != "gpuslice-system/default opt-in" {
				t.Errorf("policies wait for the state: %s", got)
			}
			if strings.Contains(r.scrape(), "gpuslice_state_write_failures_total 0") {
				t.Error("the failure is not counted")
			}
			failing.Store(false)
			time.Sleep(saveRetry)
			clustertest.Settle()
			saved, err := client.CoreV1().ConfigMaps(system).Get(t.Context(), cluster.StateName, metav1.GetOptions{})
			if err != nil || !strings.Contains(saved.Data["policy.default"], "opt-in") {
				t.Errorf("not saved: %v", err)
			}
		})
	})
	// writes: a change costs each replica a write or two (the second where
	// it decides again before its first comes back), and a quiet cluster has none.
	t.Run("replicas do not write against each other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil),
				clustertest.PolicyMap("a", 10, "mode: opt-in"), clustertest.SharedL4(t, "n1"))
			one, two := start(t, client), start(t, client)
			defer one.end()
			defer two.end()
			writes := func() (n int) {
				for _, a := range client.Actions() {
					if w, ok := a.(clienttesting.UpdateAction); ok && a.Matches("update", "configmaps") {
						if m, ok := w.GetObject().(metav1.Object); ok && m.GetName() == cluster.StateName {
							n++
						}
					}
				}
				return n
			}
			before := writes()
			const changes = 5
			for i := range changes {
				write(t, client, clustertest.PolicyMap("a", 20+i, fmt.Sprintf("mode: transparent\ndefaultSlice: {memory: %dGi}", i+1)))
			}
			after := writes()
			if after == before || after-before > 2*2*changes {
				t.Errorf("%d changes were written %d times", changes, after-before)
			}
			time.Sleep(time.Hour)
			if quiet := writes() - after; quiet > 0 {
				t.Errorf("%d writes while nothing changed", quiet)
			}
			if a, b := one.policyOf(t, "team-a"), two.policyOf(t, "team-a"); a != b {
				t.Errorf("one has %s, the other %s", a, b)
			}
		})
	})
}

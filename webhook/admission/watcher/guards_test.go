package watcher

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/clustertest"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

const l4Pool = "l4-time-slicing-4-fc4c35b3"

// failed are failures of guards of those namespaces that started now.
func failed(namespaces ...string) guardaccess.Failures {
	var reports []guardaccess.Report
	for _, namespace := range namespaces {
		reports = append(reports,
			guardaccess.Report{Pool: l4Pool, Access: "env", Namespace: namespace, Started: time.Now(), Outcome: guardaccess.Fails})
	}
	return guardaccess.Failures{}.Update(reports, time.Now())
}

// guarded is why guards of the namespace do not count on the L4 pool, "" where they do.
func guarded(t *testing.T, r *replica, namespace string) string {
	t.Helper()
	in, err := r.Input(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range in.Pools {
		if p.Name == l4Pool {
			return p.GuardFailures["env"]
		}
	}
	t.Fatal("the pool is not there")
	return ""
}

func TestGuardFailures(t *testing.T) {
	t.Run("saved by one replica, in force in all, until they are over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(clustertest.Namespace("team-a", nil), clustertest.SharedL4(t, "n1"))
			leader, other := start(t, client), start(t, client)
			defer leader.end()
			defer other.end()
			if err := leader.SaveGuardFailures(t.Context(), failed("team-b", "team-c")); err != nil {
				t.Fatal(err)
			}
			clustertest.Settle()
			for _, r := range []*replica{leader, other} {
				if guarded(t, r, "team-a") == "" {
					t.Error("guards count on a pool where they failed")
				}
			}
			if report := other.StateReport(); len(report.GuardFailures) != 1 {
				t.Errorf("the state report has %+v", report.GuardFailures)
			}
			if err := client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil { // has every replica save the state
				t.Fatal(err)
			}
			clustertest.Settle()
			if guarded(t, other, "team-a") == "" {
				t.Error("a write of the state lost the failures")
			}
			if _, err := client.CoreV1().Nodes().Create(t.Context(), clustertest.SharedL4(t, "n1"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(guardaccess.KeepFor)
			clustertest.Settle()
			if why := guarded(t, other, "team-a"); why != "" {
				t.Errorf("after a day: %s", why)
			}
			if err := leader.SaveGuardFailures(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			state, err := client.CoreV1().ConfigMaps(system).Get(t.Context(), cluster.StateName, metav1.GetOptions{})
			if err != nil || len(state.Annotations) > 0 || state.Data["pools.json"] == "" {
				t.Errorf("after they were ended: %v, %+v", err, state)
			}
		})
	})
	t.Run("not saved before there is a state", func(t *testing.T) {
		if err := newWatcher(t, fake.NewClientset()).SaveGuardFailures(t.Context(), failed("team-b")); err == nil {
			t.Error("no error")
		}
	})
	t.Run("the pool of a node", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if got := newWatcher(t, fake.NewClientset()).PoolOf("n1", "nvidia.com/gpu.shared"); got != "" {
				t.Errorf("before anything is read: %q", got)
			}
			r := start(t, fake.NewClientset(clustertest.SharedL4(t, "n1"), clustertest.SharedL4(t, "n2")))
			defer r.end()
			for _, tt := range []struct{ node, resource, want string }{
				{"n1", "nvidia.com/gpu.shared", l4Pool}, {"n2", "nvidia.com/gpu.shared", l4Pool},
				{"n3", "nvidia.com/gpu.shared", ""}, {"n1", "nvidia.com/gpu", ""},
			} {
				if got := r.PoolOf(tt.node, tt.resource); got != tt.want {
					t.Errorf("%s on %s: %q, want %q", tt.resource, tt.node, got, tt.want)
				}
			}
		})
	})
	t.Run("a tool that reads once decides alike", func(t *testing.T) {
		state := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{guardaccess.Annotation: failed("team-b", "team-c").Encode()}},
		}
		s := cluster.ReadSnapshot(cluster.Objects{State: state, Source: pools.Source{Nodes: []*corev1.Node{clustertest.SharedL4(t, "n1")}}})
		if offered := s.AuthorityInput(api.Namespace{Name: "team-a"}).Pools; offered[0].GuardFailures["env"] == "" || s.Pools()[0].GuardFailures != nil {
			t.Errorf("read %+v", offered[0].GuardFailures)
		}
	})
}

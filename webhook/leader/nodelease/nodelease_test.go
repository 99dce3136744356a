package nodelease

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/guard/lease"
)

// renewed is the Lease of gpu-1, renewed now.
func renewed(r lease.Report) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gpuslice-system", Name: lease.Name("gpu-1"),
			Labels: lease.Labels(), Annotations: r.Annotations()},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("gpu-1"), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
}

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var mu sync.Mutex
		var changes []string
		changed := func(node string) { mu.Lock(); defer mu.Unlock(); changes = append(changes, node) }
		taken := func() []string { mu.Lock(); defer mu.Unlock(); all := changes; changes = nil; return all }
		f, err := Follow(client, "gpuslice-system")
		if err != nil {
			t.Fatal(err)
		}
		f.OnChange(changed)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.Run(ctx) })
		leases := client.CoordinationV1().Leases("gpuslice-system")
		// renew renews the Lease for so long, as an agent does.
		renew := func(d time.Duration, r lease.Report) {
			t.Helper()
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Second) {
				if _, err := leases.Update(ctx, renewed(r), metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		expect := func(at string, want bool, changes ...string) {
			t.Helper()
			synctest.Wait()
			if got := f.Enforces("gpu-1"); got != want {
				t.Errorf("%s: it enforces: %v", at, got)
			}
			if got := taken(); !slices.Equal(got, changes) {
				t.Errorf("%s: changes %q, want %q", at, got, changes)
			}
		}
		time.Sleep(time.Minute)
		expect("before the agent enforces", false)
		if _, err := leases.Create(ctx, renewed(lease.Report{}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		expect("once it enforces", true, "gpu-1")
		renew(5*time.Minute, lease.Report{})
		expect("while it enforces", true)
		reason := map[string]string{"u-1": "gpu0: it is lost"}
		renew(time.Minute, lease.Report{NotEnforced: reason, Used: map[string]int64{"u-1": 7}})
		expect("but not for each pod", true, "gpu-1")
		renew(time.Minute, lease.Report{NotEnforced: reason, Used: map[string]int64{"u-1": 8}})
		expect("which is the same later", true)
		if got := f.NotEnforced("gpu-1", "u-1"); got != reason["u-1"] {
			t.Errorf("the pod is not enforced because of %q", got)
		}
		time.Sleep(lease.Duration - 11*time.Second)
		expect("right after it stopped", true)
		time.Sleep(12 * time.Second)
		expect("once it is away", false, "gpu-1")
		renew(time.Second, lease.Report{})
		expect("once it is back", true, "gpu-1")
		if err := leases.Delete(t.Context(), lease.Name("gpu-1"), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("without a Lease", false, "gpu-1")
		if f.Enforces("gpu-2") {
			t.Error("a node without an agent enforces")
		}
		stop()
		running.Wait()
	})
}

// TestLeaseOfAnother: a Lease speaks for the node that it is named after.
func TestLeaseOfAnother(t *testing.T) {
	f, err := Follow(fake.NewClientset(), "gpuslice-system")
	if err != nil {
		t.Fatal(err)
	}
	own, another := renewed(lease.Report{}), renewed(lease.Report{})
	another.Spec.HolderIdentity = new("gpu-2")
	f.renewed(own)
	f.renewed(another)
	if !f.Enforces("gpu-1") || f.Enforces("gpu-2") {
		t.Errorf("gpu-1 enforces: %v, gpu-2 enforces: %v", f.Enforces("gpu-1"), f.Enforces("gpu-2"))
	}
	second := renewed(lease.Report{})
	second.Name, second.Spec.HolderIdentity = lease.Name("gpu-2"), new("gpu-2")
	f.renewed(second)
	f.deleted(another)
	if !f.Enforces("gpu-2") {
		t.Error("gpu-2 does not enforce once another node's Lease is gone")
	}
}

// TestUsed: what a pod uses is known from the Lease of its node alone, and for as long as its agent is not away.
func TestUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := Follow(fake.NewClientset(), "gpuslice-system")
		if err != nil {
			t.Fatal(err)
		}
		renew := func(used map[string]int64) {
			time.Sleep(time.Second)
			f.renewed(renewed(lease.Report{Used: used}))
		}
		expect := func(at, node, pod string, want int64, known bool) {
			t.Helper()
			if mib, ok := f.Used(node, pod); mib != want || ok != known {
				t.Errorf("%s: %s on %s uses %d, %v", at, pod, node, mib, ok)
			}
		}
		expect("before", "gpu-1", "a", 0, false)
		renew(map[string]int64{"a": 7, "b": 0})
		expect("read", "gpu-1", "a", 7, true)
		expect("read", "gpu-1", "b", 0, true)
		expect("not read", "gpu-1", "c", 0, false)
		expect("on another node", "gpu-2", "a", 0, false)
		time.Sleep(lease.Duration)
		if _, ok := f.Used("gpu-1", "a"); ok {
			t.Error("it is known of an agent that is away")
		}
		renew(nil)
		expect("not read any more", "gpu-1", "a", 0, false)
	})
}

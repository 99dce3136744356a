package nodelease

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var mu sync.Mutex
		var changes []string
		changed := func(node string) { mu.Lock(); defer mu.Unlock(); changes = append(changes, node) }
		taken := func() []string { mu.Lock(); defer mu.Unlock(); all := changes; changes = nil; return all }
		f, err := Follow(client, "gpuslice-system", changed)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { f.Run(ctx) })
		var enforces atomic.Bool
		h := &Holder{Client: client, Namespace: "gpuslice-system", Node: "gpu-1", Enforces: enforces.Load, Log: slog.New(slog.DiscardHandler)}
		running.Go(func() { h.Run(ctx) })

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
		enforces.Store(true)
		time.Sleep(2 * time.Second)
		expect("once it enforces", true, "gpu-1")
		time.Sleep(5 * time.Minute)
		expect("while it enforces", true)
		enforces.Store(false)
		time.Sleep(Duration - period)
		expect("right after it stopped", true)
		time.Sleep(period + 2*time.Second)
		expect("once it is away", false, "gpu-1")
		enforces.Store(true)
		time.Sleep(2 * time.Second)
		expect("once it is back", true, "gpu-1")
		if err := client.CoordinationV1().Leases("gpuslice-system").Delete(t.Context(), Name("gpu-1"), metav1.DeleteOptions{}); err != nil {
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
	f, err := Follow(fake.NewClientset(), "gpuslice-system", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	h := &Holder{Client: fake.NewClientset(), Namespace: "gpuslice-system", Node: "gpu-1"}
	if err := h.renew(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	lease, err := h.Client.CoordinationV1().Leases("gpuslice-system").Get(t.Context(), Name("gpu-1"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.renewed(lease)
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity = new("gpu-2")
	f.renewed(lease)
	if !f.Enforces("gpu-1") || f.Enforces("gpu-2") {
		t.Errorf("gpu-1 enforces: %v, gpu-2 enforces: %v", f.Enforces("gpu-1"), f.Enforces("gpu-2"))
	}
}

// TestUsed: what a pod uses is known from the Lease of its node alone, and for as long as its agent is not away.
func TestUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := Follow(fake.NewClientset(), "gpuslice-system", func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		h := &Holder{Client: fake.NewClientset(), Namespace: "gpuslice-system", Node: "gpu-1", Used: func() map[string]int64 { return map[string]int64{"a": 7, "b": 0} }}
		renew := func() {
			t.Helper()
			time.Sleep(time.Second)
			if err := h.renew(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			lease, err := h.Client.CoordinationV1().Leases("gpuslice-system").Get(t.Context(), Name("gpu-1"), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f.renewed(lease)
		}
		expect := func(at, node, pod string, want int64, known bool) {
			t.Helper()
			if mib, ok := f.Used(node, pod); mib != want || ok != known {
				t.Errorf("%s: %s on %s uses %d, %v", at, pod, node, mib, ok)
			}
		}
		expect("before", "gpu-1", "a", 0, false)
		renew()
		expect("read", "gpu-1", "a", 7, true)
		expect("read", "gpu-1", "b", 0, true)
		expect("not read", "gpu-1", "c", 0, false)
		expect("on another node", "gpu-2", "a", 0, false)
		time.Sleep(Duration)
		if _, ok := f.Used("gpu-1", "a"); ok {
			t.Error("it is known of an agent that is away")
		}
		h.Used = func() map[string]int64 { return nil }
		renew()
		expect("not read any more", "gpu-1", "a", 0, false)
	})
}

package watcher

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
)

// readerOf is a claimReader of a cluster that serves claims or not.
func readerOf(t *testing.T, served bool) (claimReader, *fakediscovery.FakeDiscovery) {
	t.Helper()
	client := fake.NewClientset()
	discovery := client.Discovery().(*fakediscovery.FakeDiscovery)
	if served {
		discovery.Resources = []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1"}}
	}
	r, err := newClaimReader(client, logr.Discard(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	return r, discovery
}

func claiming(names ...string) *corev1.Pod {
	p := &corev1.Pod{}
	for i := range names {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("c", i), ResourceClaimName: &names[i]})
	}
	return p
}

// TestUnserved: a cluster that does not serve claims has none of ours, until it does.
func TestUnserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, served := range []bool{true, false} {
			r, discovery := readerOf(t, served)
			if got := len(r.served(t.Context())); (got > 0) != served {
				t.Errorf("served %t: %d informers", served, got)
			}
			spec := r.of(claiming("nic"), "team", nil)["c0"]
			if (spec == nil) != served || spec != nil && len(spec.Devices.Requests) > 0 {
				t.Errorf("served %t: a claim that is not found asks for %v", served, spec)
			}
			if served {
				continue
			}
			discovery.Resources = []*metav1.APIResourceList{{GroupVersion: "resource.k8s.io/v1"}}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { r.awaitServed(ctx, time.Minute); close(done) }()
			synctest.Wait()
			if spec := r.of(claiming("nic"), "team", nil)["c0"]; spec != nil {
				t.Errorf("after an upgrade a claim that is not found asks for %v", spec)
			}
			cancel()
			<-done
		}
	})
}

// TestCrowdedClaims: a claim that found no room is not taken for what the template of its name asks for by now.
func TestCrowdedClaims(t *testing.T) {
	r, _ := readerOf(t, true)
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "t"}}
	if err := r.templates.GetStore().Add(template); err != nil {
		t.Fatal(err)
	}
	for crowded, found := range map[string]bool{"": true, "c": false} {
		r.crowded.Store(true)
		if got := r.cached("team", crowded, "t"); (got != nil) != found {
			t.Errorf("claim %q: %v", crowded, got)
		}
		r.crowded.Store(false)
		if r.cached("team", crowded, "t") == nil {
			t.Errorf("claim %q, while all are kept: a claim that the cache does not have yet is of its template", crowded)
		}
	}
}

// TestClaimReads: a pod of many claims has few of them read, and each once.
func TestClaimReads(t *testing.T) {
	r, _ := readerOf(t, true)
	for want, names := range map[int][]string{1: {"a", "a", "a"}, maxClaimReads: slices.Collect(func(yield func(string) bool) {
		for i := range 200 {
			if !yield(fmt.Sprint("n", i)) {
				return
			}
		}
	})} {
		reads := 0
		found := r.of(claiming(names...), "team", func(string, string) *resourcev1.ResourceClaimSpec {
			reads++
			return &resourcev1.ResourceClaimSpec{}
		})
		if reads != want || len(found) < want {
			t.Errorf("%d claims: %d reads, want %d; %d found", len(names), reads, want, len(found))
		}
	}
}

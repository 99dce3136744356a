package podcache

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// TestInformer: one watch has what each of its users reads of a pod.
func TestInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := running()
		ended.Name, ended.UID = "ended", "u2"
		plain := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "plain", UID: "u3"}}
		client := fake.NewClientset(ended, plain)
		pods := NewInformer(Options{Client: client, Label: "team",
			Templates: func(p *corev1.Pod) Templates { return TemplatesOf([]string{"of-" + p.Name}) }})
		var mu sync.Mutex
		var gone []string
		record := func(_ string, uid types.UID) { mu.Lock(); defer mu.Unlock(); gone = append(gone, string(uid)) }
		_, err := pods.AddEventHandler(OnGone(record))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); pods.RunWithContext(ctx) }()
		synctest.Wait()
		on, indexed := pods.GetIndexer().ByIndex(ByNode, "node-1")
		if err := errors.Join(err, indexed); err != nil || len(on) != 1 || len(pods.GetStore().List()) != 2 {
			t.Errorf("%v: %d pods with a promise on their node, %d pods", err, len(on), len(pods.GetStore().List()))
		}
		for _, object := range pods.GetStore().List() {
			if p := object.(*Pod); !slices.Equal(p.Templates().List(), []string{"of-" + p.Name}) {
				t.Errorf("templates of %s: %q", p.Name, p.Templates().List())
			}
		}
		for _, name := range []string{"plain", "ended"} {
			if err := client.CoreV1().Pods("team-a").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		cancel()
		<-done
		if !slices.Equal(gone, []string{"u3", "u2"}) {
			t.Errorf("gone: %q", gone)
		}
	})
}

// TestTemplatesWithoutRoom: where no pod finds room, claim templates have one of their own; beyond it the namespace is reported.
func TestTemplatesWithoutRoom(t *testing.T) {
	for names, want := range map[int]struct{ templates, full string }{
		maxNames: {"of-train", FullPods}, 1: {"", FullPods + " " + FullTemplates},
	} {
		synctest.Test(t, func(t *testing.T) {
			pod := running()
			pod.Name = "train"
			var full []string
			o := Options{Client: fake.NewClientset(pod), Templates: func(p *corev1.Pod) Templates { return TemplatesOf([]string{"of-" + p.Name}) },
				Full: func(kind, _ string) { full = append(full, kind) }}
			pods := o.informer(1, names)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); pods.RunWithContext(ctx) }()
			synctest.Wait()
			cancel()
			<-done
			all := pods.GetStore().List()
			if len(all) != 1 {
				t.Fatalf("%d pods are kept", len(all))
			}
			if p := all[0].(*Pod); p.Holds() || strings.Join(p.Templates().List(), " ") != want.templates || strings.Join(full, " ") != want.full {
				t.Errorf("room of %d bytes: holds devices: %t, templates %q, without room: %q", names, p.Holds(), p.Templates().List(), full)
			}
		})
	}
}

// TestOnGone: a pod that holds nothing is gone once it is deleted, any other once it has ended.
func TestOnGone(t *testing.T) {
	t.Parallel()
	kept := func(change func(*corev1.Pod)) *Pod {
		pod := running()
		change(pod)
		p, err := Of(pod, "")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	lives := kept(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	ended := kept(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	calls := 0
	h := OnGone(func(string, types.UID) { calls++ })
	for i, c := range []struct {
		do   func()
		want int
	}{
		{func() { h.OnAdd(ended, true) }, 0},
		{func() { h.OnUpdate(lives, lives) }, 0},
		{func() { h.OnUpdate(lives, ended) }, 1},
		{func() { h.OnDelete(lives) }, 1},
		{func() { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: lives}) }, 1},
		{func() { h.OnDelete(cache.DeletedFinalStateUnknown{}) }, 0},
	} {
		calls = 0
		if c.do(); calls != c.want {
			t.Errorf("%d: %d calls, want %d", i, calls, c.want)
		}
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	if got := TemplatesOf([]string{"b", "a", "b"}); !slices.Equal(got.List(), []string{"a", "b"}) ||
		got != TemplatesOf([]string{"a", "b"}) || got.size() != len("a b") {
		t.Errorf("%q, %d bytes", got.List(), got.size())
	}
	if got := TemplatesOf(nil); got != (Templates{}) || got.List() != nil || got.size() != 0 {
		t.Errorf("none: %q, %d bytes", got.List(), got.size())
	}
	with := Options{Templates: func(*corev1.Pod) Templates { return TemplatesOf([]string{"gpuslice-1mi"}) }}
	if _, size := with.Keep(&corev1.Pod{}); size != len("gpuslice-1mi") {
		t.Errorf("a pod that holds nothing and names a template has %d bytes", size)
	}
}

package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/guard/ticks"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/boundedtest"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// labelled holds as many slices as a pod's label names, on the basis that another names.
func labelled(p *corev1.Pod) (quota.Holding, ChargeBasis) {
	n, _ := strconv.ParseInt(p.Labels["slices"], 10, 64) // 0 without the label
	basis := map[string]ChargeBasis{"": BasisPromise, "devices": BasisDevices, "unmanaged": BasisUnmanaged}[p.Labels["basis"]]
	return quota.Holding{Namespace: "a", Charge: quota.Charge{Slices: n}}, basis
}

func labelledPod(uid string, version, slices int, basis string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), ResourceVersion: strconv.Itoa(version), Generation: 1,
		Annotations: map[string]string{api.AnnotationPromise: fmt.Sprint(slices, basis)},
		Labels:      map[string]string{"slices": strconv.Itoa(slices), "basis": basis}}}
}

// requesting is a container that requests one of a resource.
func requesting(name corev1.ResourceName) corev1.Container {
	one := corev1.ResourceList{name: resource.MustParse("1")}
	return corev1.Container{Resources: corev1.ResourceRequirements{Limits: one, Requests: one}}
}

// TestPodsOfNoCluster: what a pod holds depends on the cluster unless it has a promise, or nothing that could be a GPU.
func TestPodsOfNoCluster(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*corev1.Pod)
		read    int
		depends bool
	}{
		"nothing":              {func(*corev1.Pod) {}, 0, false},
		"CPU":                  {func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{requesting(corev1.ResourceCPU)} }, 0, false},
		"an extended resource": {func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{requesting("example.com/any")} }, 1, true},
		"in an init container": {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{requesting("nvidia.com/gpu")} }, 1, true},
		"a claim":              {func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }, 1, true},
		"a false promise":      {func(p *corev1.Pod) { p.Annotations = map[string]string{api.AnnotationPromise: "none"} }, 1, true},
		"a promise": {func(p *corev1.Pod) {
			p.Annotations, p.Labels["basis"] = map[string]string{api.AnnotationPromise: "it"}, ""
		}, 1, false},
	} {
		pod := labelledPod("p", 2, 0, "unmanaged")
		pod.Annotations = nil
		c.change(pod)
		read := 0
		w := &watchedPods{holdingOf: func(p *corev1.Pod) (quota.Holding, ChargeBasis) { read++; return labelled(p) }}
		_ = w.Replace(shownAll(w, []any{pod}), "2")
		if read != c.read || w.dependsOnCluster() != c.depends {
			t.Errorf("%s: read %d times, depends on the cluster: %t", name, read, w.dependsOnCluster())
		}
		_ = w.Delete(shown(w, pod))
		if w.dependsOnCluster() {
			t.Errorf("%s: without pods it depends on the cluster", name)
		}
	}
}

// shown is what is kept of a pod.
func shown(w *watchedPods, pod *corev1.Pod) any {
	kept, _ := w.shown(pod)
	return kept
}

func shownAll(w *watchedPods, pods []any) (out []any) {
	for _, pod := range pods {
		out = append(out, shown(w, pod.(*corev1.Pod)))
	}
	return out
}

func viewOf(w *watchedPods, uids ...string) (View, bool) {
	v := View{Shown: map[string]bool{}}
	var reservations []Reservation
	for _, uid := range uids {
		reservations = append(reservations, Reservation{PodUID: uid})
	}
	ok := w.addTo(&v, "a", reservations)
	return v, ok
}

// TestWatchedPodsAddUp holds the sums against those of a list, whatever pods come, change and go.
func TestWatchedPodsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w, there, version := &watchedPods{holdingOf: labelled}, map[string]*corev1.Pod{}, 1
	_ = w.Replace(nil, "1")
	for range 5000 {
		version++
		uid := fmt.Sprint(random.IntN(40))
		switch pod := there[uid]; {
		case pod != nil && random.IntN(3) == 0:
			pod.ResourceVersion = strconv.Itoa(version)
			_ = w.Delete(shown(w, pod))
			delete(there, uid)
		case random.IntN(100) == 0:
			var all []any
			for _, p := range there {
				all = append(all, p)
			}
			_ = w.Replace(shownAll(w, all), strconv.Itoa(version))
		default:
			there[uid] = labelledPod(uid, version, random.IntN(4), []string{"", "devices", "unmanaged"}[random.IntN(3)])
			_ = w.Update(shown(w, there[uid]))
		}
		var listed, unmanaged []Pod
		for uid, p := range there {
			h, basis := labelled(p)
			listed = append(listed, Pod{UID: uid, Holding: h})
			if basis == BasisUnmanaged && h.Charge.Slices > 0 {
				unmanaged = append(unmanaged, Pod{UID: uid})
			}
		}
		v, ok := viewOf(w, "7", "gone")
		if diff := cmp.Diff(baseOf(listed), v.Base, cmpopts.EquateEmpty()); diff != "" || !ok || v.Namespaces[0].Revision != uint64(version) {
			t.Fatalf("%v at %+v, want %d (-listed +watched)\n%s", ok, v.Namespaces, version, diff)
		}
		if v.Shown["7"] != (there["7"] != nil) || v.Shown["gone"] || len(v.Unmanaged) != len(unmanaged) {
			t.Fatalf("shown %v, unmanaged %+v; there are %v", v.Shown, v.Unmanaged, there)
		}
	}
}

// TestWatchedPodsRememberThoseGone has a pod live for a moment, so that no list and no view shows it. The replica that watches its
// namespace need not lead to know of it.
func TestWatchedPodsRememberThoseGone(t *testing.T) {
	g := &GonePods{}
	w := &watchedPods{holdingOf: labelled, gone: g}
	_ = w.Replace(nil, "1")
	quick := labelledPod("quick", 2, 1, "")
	_ = w.Add(shown(w, quick))
	if g.Has("quick") {
		t.Error("a pod that lives counts as gone")
	}
	quick.ResourceVersion = "3"
	_ = w.Delete(shown(w, quick))
	reserved := State{Namespaces: []string{"a"}, Revisions: map[string]uint64{"a": 1},
		Reservations: []Reservation{{PodUID: "quick"}, {PodUID: "on its way"}}}
	view, ok := viewOf(w, "quick", "on its way")
	view.Gone = g
	after, follows := reserved.WithView(view)
	if !ok || !follows || len(after.Reservations) != 1 || after.Reservations[0].PodUID != "on its way" {
		t.Errorf("%v %v: %+v", ok, follows, after.Reservations)
	}
	_ = w.Replace(nil, "2") // of an API server that is behind, which shows no deletion
	if g.Has("on its way") {
		t.Error("what a list does not show counts as gone")
	}
}

func TestWatchedPods(t *testing.T) {
	claims := labelledPod("claims", 6, 1, "")
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	for name, c := range map[string]struct {
		do       func(*watchedPods)
		ok       bool
		revision uint64
	}{
		"nothing is shown yet":                   {func(*watchedPods) {}, false, 0},
		"a bookmark before the first list":       {func(w *watchedPods) { _ = w.Bookmark("9") }, false, 0},
		"a list of no pods":                      {func(w *watchedPods) { _ = w.Replace(nil, "5") }, true, 5},
		"a bookmark":                             {func(w *watchedPods) { _ = w.Replace(nil, "5"); _ = w.Bookmark("9") }, true, 9},
		"a list of an API server that is behind": {func(w *watchedPods) { _ = w.Replace(nil, "5"); _ = w.Replace(nil, "4") }, true, 4},
		"versions that are no numbers":           {func(w *watchedPods) { _ = w.Replace(nil, "a5") }, false, 0},
		"a broken watch":                         {func(w *watchedPods) { _ = w.Replace(nil, "5"); w.broken() }, false, 0},
		"a watch that goes on":                   {func(w *watchedPods) { _ = w.Replace(nil, "5"); w.broken(); _ = w.Bookmark("6") }, true, 6},
		"claims of a pod with a promise":         {func(w *watchedPods) { _ = w.Replace(shownAll(w, []any{claims}), "6") }, false, 0},
		"and after they are gone": {
			func(w *watchedPods) { _ = w.Replace(shownAll(w, []any{claims}), "6"); _ = w.Delete(shown(w, claims)) }, true, 6,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watchedPods{holdingOf: labelled}
			c.do(w)
			v, ok := viewOf(w)
			if ok != c.ok || ok && v.Namespaces[0].Revision != c.revision {
				t.Errorf("%v, %+v; want %v, %d", ok, v, c.ok, c.revision)
			}
		})
	}
}

// TestViewOfNamespaces has one replica watch as many namespaces as it may, the second of them without a connection, and the third with pods
// that hold something else now.
func TestViewOfNamespaces(t *testing.T) {
	c := &ClusterWatcher{ctx: t.Context(), Generation: func(string) any { return 1 }, watches: map[string]*namespaceWatch{}}
	for i := range maxWatches {
		pods := &watchedPods{holdingOf: labelled}
		_ = pods.Replace(nil, "5")
		c.watches[strconv.Itoa(i)] = &namespaceWatch{pods: pods, generation: 1}
	}
	c.watches["1"].pods.broken()
	c.watches["2"].generation, c.watches["2"].started, c.watches["2"].pods.unpromised = 0, time.Now(), 1
	for name, tt := range map[string]struct {
		namespaces []string
		shown      int
		all        bool
		pending    bool
	}{
		"no namespace":                         {nil, 0, true, false},
		"one":                                  {[]string{"0"}, 1, true, false},
		"several":                              {[]string{"0", "4", "3"}, 3, true, false},
		"one without a connection":             {[]string{"1"}, 0, false, true},
		"others after it":                      {[]string{"0", "1", "3"}, 2, false, true},
		"more than are watched":                {[]string{"new", "0"}, 1, false, false},
		"the last of more than may":            {[]string{"0", "new"}, 1, false, false},
		"one that is soon to be watched again": {[]string{"2", "0"}, 1, false, true},
	} {
		v, all := c.View(tt.namespaces, nil)
		if len(v.Namespaces) != tt.shown || all != tt.all || v.Pending != tt.pending || len(c.watches) != maxWatches {
			t.Errorf("%s: shown %v, all %v, pending %v; %d watches", name, v.Namespaces, all, v.Pending, len(c.watches))
		}
	}
}

func TestWatchedPodsReadHoldings(t *testing.T) {
	for name, c := range map[string]struct {
		basis string
		after func(*corev1.Pod)
		reads int
	}{
		"of a promise once":                       {"", func(*corev1.Pod) {}, 1},
		"of another promise anew":                 {"", func(p *corev1.Pod) { p.Annotations[api.AnnotationPromise] = "other" }, 2},
		"of another spec anew":                    {"", func(p *corev1.Pod) { p.Generation = 2 }, 2},
		"anew where the server counts no changes": {"", func(p *corev1.Pod) { p.Generation = 0 }, 2},
		"of a promise beside claims anew":         {"", func(p *corev1.Pod) { p.Spec.ResourceClaims = make([]corev1.PodResourceClaim, 1) }, 2},
		"of devices anew":                         {"devices", func(*corev1.Pod) {}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			w := &watchedPods{holdingOf: func(p *corev1.Pod) (quota.Holding, ChargeBasis) { reads++; return labelled(p) }}
			_ = w.Replace(shownAll(w, []any{labelledPod("p", 1, 1, c.basis)}), "1")
			again := labelledPod("p", 2, 1, c.basis)
			c.after(again)
			_ = w.Update(shown(w, again))
			if reads != c.reads {
				t.Errorf("read %d times, want %d", reads, c.reads)
			}
		})
	}
}

// TestDeletedPodsAreNotJudged: what a pod held is read when it comes, and not when it goes.
func TestDeletedPodsAreNotJudged(t *testing.T) {
	t.Parallel()
	pod := labelledPod("u", 7, 1, "devices")
	pod.Namespace = "a"
	config := boundedtest.BinaryServer{List: &corev1.PodList{Items: []corev1.Pod{*pod}},
		Last: &watch.Event{Type: watch.Deleted, Object: pod}}.Start(t)
	config.Wrap(bounded.Limit)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var reads atomic.Int64
	c := &ClusterWatcher{Client: client, Generation: func(string) any { return 1 }, Gone: &GonePods{},
		ctx: ctx, watches: map[string]*namespaceWatch{},
		HoldingOf: func(p *corev1.Pod) (quota.Holding, ChargeBasis) { reads.Add(1); return labelled(p) }}
	defer c.running.Wait()
	defer cancel()
	c.View([]string{"a"}, nil)
	for range ticks.After(ctx, time.Millisecond) {
		if c.Gone.Has("u") {
			break
		}
	}
	if n := reads.Load(); n != 1 || !c.Gone.Has("u") {
		t.Errorf("read %d times; gone: %t", n, c.Gone.Has("u"))
	}
}

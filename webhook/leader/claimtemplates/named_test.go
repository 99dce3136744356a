package claimtemplates

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/webhook/governed"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// recounted are how many pods of each namespace name each template, by a look at all pods.
func recounted(pods map[string]*corev1.Pod) map[string]map[string]int {
	out := map[string]map[string]int{}
	for _, p := range pods {
		each := map[string]bool{}
		for _, t := range claims.Named(p) {
			each[t.Name] = true
		}
		for name := range each {
			if out[p.Namespace] == nil {
				out[p.Namespace] = map[string]int{}
			}
			out[p.Namespace][name]++
		}
	}
	return out
}

func (t *namedTemplates) counted() map[string]map[string]int {
	out := map[string]map[string]int{}
	for namespace, in := range t.namespaces {
		out[namespace] = map[string]int{}
		for name, n := range in.templates {
			out[namespace][name] = *n
		}
	}
	return out
}

// TestNamedTemplates has pods come, change and go in any order, shown one by one, twice, or in the first list, and counts again after each.
func TestNamedTemplates(t *testing.T) {
	t.Parallel()
	many := []string{four, "gpuslice-1mi", "gpuslice-2x4396mi", "gpuslice-8492mi-share", "mine", "gpuslice-4Gi", "gpuslice-notes"}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		woken, there := 0, map[string]bool{}
		named := newNamedTemplates(func() { woken++ }, func(namespace, name string) bool { return !there[namespace+"/"+name] })
		pods := map[string]*corev1.Pod{}
		anyPod := func() *corev1.Pod {
			p := pod(fmt.Sprint("team-", random.IntN(3)), fmt.Sprint("p", random.IntN(8)))
			for range random.IntN(4) {
				p.Spec.ResourceClaims = append(p.Spec.ResourceClaims,
					corev1.PodResourceClaim{ResourceClaimTemplateName: new(many[random.IntN(len(many))])})
			}
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{ResourceClaimName: new(four)})
			return p
		}
		for step := range 150 {
			var what string
			p, before := anyPod(), recounted(pods)
			key := p.Namespace + "/" + p.Name
			changed := pods[key] == nil || NamedBy(pods[key]) != NamedBy(p)
			woken = 0
			for namespace, counts := range before {
				for name := range counts {
					there[namespace+"/"+name] = random.IntN(4) > 0
				}
			}
			switch n := random.IntN(20); {
			case n < 8:
				what = "add"
				pods[key] = p
				named.put(reduced(p), false)
			case n < 12:
				what = "update"
				pods[key] = p
				named.put(reduced(p), false)
			case n < 18:
				what = "delete"
				delete(pods, key)
				named.remove(reduced(p))
			default:
				what = "list"
				pods[key] = p
				named.put(reduced(p), true)
			}
			want := recounted(pods)
			if diff := cmp.Diff(want, named.counted()); diff != "" {
				t.Fatalf("seed %d, step %d, %s (-want +got)\n%s", seed, step, what, diff)
			}
			if want := wakes(what, p, changed, before, there); (woken > 0) != want {
				t.Fatalf("seed %d, step %d, %s of %v: woken %d times", seed, step, what, p.Spec.ResourceClaims, woken)
			}
		}
	}
}

// wakes reports whether there is anything to write after a pod was shown.
func wakes(what string, p *corev1.Pod, changed bool, before map[string]map[string]int, there map[string]bool) bool {
	if what == "delete" || what == "list" {
		return false
	}
	return slices.ContainsFunc(NamedBy(p).List(), func(name string) bool {
		return before[p.Namespace][name] == 0 || changed && !there[p.Namespace+"/"+name]
	})
}

// TestNamesOfHostilePod has a pod that nobody reviewed name as many templates as fit into an object of the API server's.
func TestNamesOfHostilePod(t *testing.T) {
	t.Parallel()
	p := pod("team-a", "p")
	for i := range 25_000 {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims,
			corev1.PodResourceClaim{ResourceClaimTemplateName: new(fmt.Sprintf("gpuslice-%dmi", 1+i))})
	}
	if got := NamedBy(p).List(); len(got) != policies.MaxContainers || !slices.IsSorted(got) {
		t.Errorf("%d names: %q", len(got), got)
	}
}

// TestNamesRepeated has copies of one name before another.
func TestNamesRepeated(t *testing.T) {
	t.Parallel()
	p := pod("team-a", "p", append(slices.Repeat([]string{four}, 2*policies.MaxContainers), "gpuslice-1mi")...)
	if got := NamedBy(p).List(); !slices.Equal(got, []string{"gpuslice-1mi", four}) {
		t.Errorf("names %q", got)
	}
}

// TestNamesOfPodsGone has pods go that named much: of what they named, no more is kept than what others name.
func TestNamesOfPodsGone(t *testing.T) {
	const n = 4000
	named := newNamedTemplates(func() {}, func(string, string) bool { return false })
	for i := range n {
		named.put(reduced(pod("team-a", fmt.Sprint("stays-", i), fmt.Sprintf("gpuslice-%dmi", 1+i))), false)
	}
	before := heap()
	for i := range n {
		p := pod("team-a", "goes", fmt.Sprintf("gpuslice-%dmi", 1+i))
		for j := range policies.MaxContainers - 1 {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims,
				corev1.PodResourceClaim{ResourceClaimTemplateName: new(fmt.Sprintf("gpuslice-%dmi-share", 1+i*policies.MaxContainers+j))})
		}
		named.put(reduced(p), false)
		named.remove(reduced(p))
	}
	if grown := heap() - before; grown > n*policies.MaxContainers {
		t.Errorf("%d bytes more for each pod that has gone", grown/n)
	}
	runtime.KeepAlive(named)
}

// reduced is what is kept of a pod.
func reduced(p *corev1.Pod) any {
	kept, _ := podcache.Options{Templates: NamedBy}.Keep(p)
	return kept
}

// heap are the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	for range 3 { // what is unique is given up by one collection, and collected by the next
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestSyncOfFullNamespace has a namespace name many more templates than it may have: what they would say is not even worked out.
func TestSyncOfFullNamespace(t *testing.T) {
	const n = 20_000
	client := fake.NewClientset()
	templates := resourceinformers.NewResourceClaimTemplateInformer(client, metav1.NamespaceAll, 0, cache.Indexers{})
	w := New(Options{Client: client, Templates: templates,
		Governed: func() ([]governed.Namespace, error) { return under("claim", "team-a"), nil }, Log: logr.Discard()})
	w.named = newNamedTemplates(w.wake, w.lacks)
	w.backoff = flowcontrol.NewBackOff(minBackoff, maxBackoff)
	for i := range n {
		name := fmt.Sprintf("gpuslice-%dmi", 1+i)
		w.named.put(reduced(pod("team-a", name, name)), false)
		if i < MaxTemplates {
			must(t, templates.GetStore().Add(templateOf("team-a", name)))
		}
	}
	w.sync(t.Context())
	began := time.Now()
	if w.sync(t.Context()); testing.AllocsPerRun(1, func() { w.sync(t.Context()) }) > 5*n {
		t.Errorf("a sync allocates more than five times a name")
	}
	t.Logf("a sync takes %s", time.Since(began)/3)
}

const crowd = 50_000

func crowded(b *testing.B) *namedTemplates {
	b.Helper()
	want := templateOf("team-a", four)
	named := newNamedTemplates(func() { b.Fatal("woken") }, func(namespace, name string) bool {
		return !saysItsName(want, templateNamed(namespace, name))
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	named.wake = func() {}
	for i := range crowd {
		named.put(reduced(pod("team-a", fmt.Sprintf("train-%d-5d4f8c7b9d-%05d", i%50, i), four)), false)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Logf("%d bytes a pod", (after.HeapAlloc-before.HeapAlloc)/crowd)
	named.wake = func() { b.Fatal("woken") }
	return named
}

// BenchmarkOnePodMore has one more pod come and go whose template 50,000 others name: nobody is woken.
func BenchmarkOnePodMore(b *testing.B) {
	named, p := crowded(b), pod("team-a", "one-more", four)
	for b.Loop() {
		named.put(reduced(p), false)
		named.remove(reduced(p))
	}
}

// BenchmarkWhatIsNamed is what a sync reads of 50,000 pods.
func BenchmarkWhatIsNamed(b *testing.B) {
	named := crowded(b)
	for b.Loop() {
		if turns := inTurn(named.of(map[string]bool{"team-a": true})); len(turns) != 1 {
			b.Fatal(turns)
		}
	}
}

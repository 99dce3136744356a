package bounded

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// TestRoom: whatever comes and goes, all together have no more than there is, and a namespace that has little is never without room.
func TestRoom(t *testing.T) {
	const most = 100 * overhead
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := &capacity{most: most}
		r.empty()
		there := map[[2]string]cost{}
		for step := range 400 {
			namespace, name := fmt.Sprint("n", random.IntN(6)), fmt.Sprint("o", random.IntN(40))
			key := [2]string{namespace, name}
			if random.IntN(4) == 0 {
				r.remove(namespace, name)
				delete(there, key)
			} else {
				c := cost{bytes: overhead + random.IntN(overhead)}
				if n := random.IntN(5); n > 0 {
					c.common, c.commonBytes = n, n*overhead
				}
				ok, had, _ := r.put(namespace, name, c)
				if _, was := there[key]; was != had {
					t.Fatalf("seed %d, step %d: had %t, want %t", seed, step, had, was)
				}
				if there[key] = c; !ok {
					delete(there, key)
				}
			}
			used, common := map[string]int{}, map[[2]any]bool{}
			for key, c := range there {
				used[key[0]] += c.bytes
				if c.common != nil && !common[[2]any{key[0], c.common}] {
					common[[2]any{key[0], c.common}] = true
					used[key[0]] += c.commonBytes
				}
			}
			all := 0
			for namespace, n := range used {
				if all += n; r.namespaces[namespace].used != n {
					t.Fatalf("seed %d, step %d: %s uses %d, counted %d", seed, step, namespace, n, r.namespaces[namespace].used)
				}
			}
			if r.used != all || all > most {
				t.Fatalf("seed %d, step %d: %d in use, counted %d, at most %d", seed, step, all, r.used, most)
			}
			if ok, _, _ := r.put("newcomer", "o", cost{bytes: (most - all) / 2}); !ok {
				t.Fatalf("seed %d, step %d: a newcomer finds no room, and %d bytes are free", seed, step, most-all)
			}
			r.remove("newcomer", "o")
		}
	}
}

func named(namespace string, i, size int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("m", i), ResourceVersion: "1"},
		BinaryData: map[string][]byte{"b": make([]byte, size)}}
}

func sizeOf(o runtime.Object) (runtime.Object, int) {
	return o, len(o.(*corev1.ConfigMap).BinaryData["b"])
}

func keysOf(informer cache.SharedIndexInformer) []string {
	keys := informer.GetStore().ListKeys()
	slices.Sort(keys)
	return keys
}

// TestInformer has a namespace fill what there is, and another that comes later keep all of its own.
func TestInformer(t *testing.T) {
	for _, least := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			var full []string
			var mu sync.Mutex
			kept := Kept{Name: "ConfigMaps", Of: sizeOf, Bytes: 20 * (1000 + overhead), Full: func(kind, namespace string) {
				mu.Lock()
				defer mu.Unlock()
				full = append(full, kind+" of "+namespace)
			}}
			if least {
				kept.Least = &Kept{Of: func(o runtime.Object) (runtime.Object, int) { return named(o.(*corev1.ConfigMap).Namespace, 99, 0), 0 }}
			}
			put := func(m *corev1.ConfigMap) {
				t.Helper()
				_, err := client.CoreV1().ConfigMaps(m.Namespace).Create(t.Context(), m, metav1.CreateOptions{})
				if err != nil {
					_, err = client.CoreV1().ConfigMaps(m.Namespace).Update(t.Context(), m, metav1.UpdateOptions{})
				}
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			for i := range 5 {
				put(named("hog", i, 1000))
			}
			informer := From(client, client.CoreV1().ConfigMaps(""), nil).Informer(kept, cache.Indexers{})
			var running sync.WaitGroup
			defer running.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			running.Go(func() { informer.RunWithContext(ctx) })
			synctest.Wait()
			for i := range 15 {
				put(named("hog", 5+i, 1000))
			}
			want := 10
			if least {
				want++ // all that found no room are one here
			}
			if got := len(keysOf(informer)); got != want {
				t.Errorf("%d of the hog's are kept, want %d", got, want)
			}
			for i := range 5 {
				put(named("team-a", i, 1000))
			}
			if got := len(keysOf(informer)); got != want+5 {
				t.Errorf("%d are kept, want %d", got, want+5)
			}
			if !slices.Equal(full, []string{"ConfigMaps of hog"}) {
				t.Errorf("reported %q", full)
			}
			put(named("team-a", 0, 1_000_000))
			if slices.Contains(keysOf(informer), "team-a/m0") != least && !least {
				t.Error("one that has grown beyond what there is is still there")
			}
			for i := range 20 {
				if err := client.CoreV1().ConfigMaps("hog").Delete(t.Context(), fmt.Sprint("m", i), metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			put(named("hog", 30, 9*1000))
			if !slices.Contains(keysOf(informer), "hog/m30") {
				t.Errorf("the room of those that went is not given back: %q", keysOf(informer))
			}
		})
	}
}

// TestLeast: what finds no room is in the second room alone, whatever comes, grows and goes.
func TestLeast(t *testing.T) {
	k := newKeeper(&Kept{Of: sizeOf, Bytes: 10 * overhead,
		Least: &Kept{Of: func(o runtime.Object) (runtime.Object, int) { return o, 1 }, Bytes: 8 * overhead}})
	k.empty()
	random := rand.New(rand.NewPCG(1, 1))
	for step := range 2000 {
		m := named(fmt.Sprint("n", random.IntN(3)), random.IntN(9), 1+random.IntN(4*overhead))
		kind := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}[random.IntN(3)]
		shown := k.event(watch.Event{Type: kind, Object: m}).Type
		rooms := 0
		for _, r := range []*capacity{&k.capacity, &k.least.capacity} {
			if s := r.namespaces[m.Namespace]; s != nil {
				if _, ok := s.own[m.Name]; ok {
					rooms++
				}
			}
			if r.used > r.most {
				t.Fatalf("step %d: %d bytes in use, at most %d", step, r.used, r.most)
			}
		}
		if kept := shown == watch.Added || shown == watch.Modified; kept != (rooms == 1) || rooms > 1 {
			t.Fatalf("step %d: shown as %s, and in %d rooms", step, shown, rooms)
		}
	}
}

// TestInformerLists has more come at once than there is room for.
func TestInformerLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		for i := range 30 {
			_, _ = client.CoreV1().ConfigMaps("hog").Create(t.Context(), named("hog", i, 1000), metav1.CreateOptions{})
		}
		informer := From(client, client.CoreV1().ConfigMaps(""), nil).Informer(
			Kept{Name: "ConfigMaps", Of: sizeOf, Bytes: 20 * (1000 + overhead)}, cache.Indexers{})
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		running.Go(func() { informer.RunWithContext(ctx) })
		synctest.Wait()
		if got := len(keysOf(informer)); got != 10 || !informer.HasSynced() {
			t.Errorf("%d are kept", got)
		}
	})
}

// TestWatchEnds: a watch that nobody reads any more ends, though an event was on its way.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := watch.NewFakeWithChanSize(3, false)
		for i := range 3 {
			from.Add(named("a", i, 1))
		}
		w := watchKept(from, func(e watch.Event) watch.Event { return e })
		<-w.ResultChan()
		w.Stop()
	}) // fails if a goroutine is left
}

package bounded

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// oldServer answers lists of pods, and has no watches of lists.
type oldServer struct {
	sizes []int // of the pods

	mu     sync.Mutex
	limits []int // of the lists that it was asked for
}

// ServeHTTP implements http.Handler. As an API server does, it heeds no limit of lists from its cache.
func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("watch") != "" {
		if q.Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	s.mu.Lock()
	s.limits = append(s.limits, limit)
	s.mu.Unlock()
	first, _ := strconv.Atoi(q.Get("continue"))
	last := len(s.sizes)
	if limit > 0 && q.Get("resourceVersion") != "0" {
		last = min(last, first+limit)
	}
	out := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := first; i < last; i++ {
		out.Items = append(out.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprint("p", i),
			ResourceVersion: "7", Annotations: map[string]string{"a": strings.Repeat("x", s.sizes[i])}}})
	}
	if last < len(s.sizes) {
		out.Continue = strconv.Itoa(last)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (s *oldServer) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	config.Wrap(Limit)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func repeat(n, size int) (out []int) {
	for range n {
		out = append(out, size)
	}
	return out
}

func TestPages(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []int
		lists int // at most
	}{
		"none":                       {nil, 1},
		"small":                      {repeat(1000, 1<<10), 1},
		"many":                       {repeat(2000, 4<<10), 12},
		"large":                      {repeat(12, 1500<<10), 20},
		"large ones after small":     {append(repeat(300, 100), repeat(8, 1500<<10)...), 25},
		"as much as etcd takes":      {repeat(4, 3<<20), 20},
		"large ones before many":     {append(repeat(8, 1500<<10), repeat(4000, 1<<10)...), 40},
		"a large one between others": {append(append(repeat(300, 10<<10), 3900<<10), repeat(300, 10<<10)...), 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &oldServer{sizes: c.sizes}
			client := server.client(t)
			seen := map[string]bool{}
			version, err := From(client, client.CoreV1().Pods("team-a"), nil).Each(t.Context(), metav1.ListOptions{ResourceVersion: "0"},
				func(o kuberuntime.Object) error {
					seen[o.(*corev1.Pod).Name] = true
					return nil
				})
			if err != nil || version != "7" || len(seen) != len(c.sizes) {
				t.Errorf("%d of %d pods, version %q: %v", len(seen), len(c.sizes), version, err)
			}
			if len(server.limits) > c.lists {
				t.Errorf("%d lists: %v", len(server.limits), server.limits)
			}
		})
	}
	t.Run("one is larger than any page", func(t *testing.T) {
		client := (&oldServer{sizes: []int{10, 5 << 20}}).client(t)
		_, err := From(client, client.CoreV1().Pods("team-a"), nil).Each(t.Context(), metav1.ListOptions{},
			func(kuberuntime.Object) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "the list has more than 4194304 bytes") {
			t.Error(err)
		}
	})
	if !decoding.TryAcquire(maxPage) {
		t.Error("a page is still held")
	} else {
		decoding.Release(maxPage)
	}
}

// TestInformerOfOldServer has an informer list what is too large for one page, of an API server without watches of lists.
func TestInformerOfOldServer(t *testing.T) {
	t.Parallel()
	client := (&oldServer{sizes: repeat(12, 1000<<10)}).client(t)
	informer := From(client, client.CoreV1().Pods("team-a"), nil).Informer(Kept{Name: "pods", Bytes: 1 << 20,
		Of: func(o kuberuntime.Object) (kuberuntime.Object, int) {
			about := o.(*corev1.Pod)
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: about.Namespace,
				Name: about.Name, ResourceVersion: about.ResourceVersion}}, 100
		}}, cache.Indexers{})
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) || len(informer.GetStore().List()) != 12 {
		t.Errorf("%d pods", len(informer.GetStore().List()))
	}
}

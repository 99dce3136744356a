package cgroupv2

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// apiServer has pods, which it streams to who watches them, and collects Events.
type apiServer struct {
	url string

	mu     sync.Mutex
	pods   []version
	events []*corev1.Event
	more   chan struct{} // closed with the next pod or Event
}

// version is a pod that was added, modified or deleted.
type version struct {
	event watch.EventType
	pod   *corev1.Pod
}

func startAPIServer(t *testing.T) *apiServer {
	s := &apiServer{more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", s.watch)
	mux.HandleFunc("POST /api/v1/namespaces/{namespace}/events", s.record)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }) // Leases
	server := httptest.NewServer(mux)
	s.url = server.URL
	t.Cleanup(server.CloseClientConnections)
	return s
}

func (s *apiServer) put(event watch.EventType, p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = append(s.pods, version{event, p})
	s.changed()
}

func (s *apiServer) changed() {
	close(s.more)
	s.more = make(chan struct{})
}

// after returns the pods from one on, and what is closed when there are more.
func (s *apiServer) after(n int) ([]version, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[n:], s.more
}

// watch answers a list with nothing, and a watch with every pod and those to come.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	if r.URL.Query().Get("watch") == "" {
		_ = out.Encode(&corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
		return
	}
	send := func(v version) {
		p := v.pod.DeepCopy()
		p.TypeMeta, p.ResourceVersion = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, "1"
		_ = out.Encode(metav1.WatchEvent{Type: string(v.event), Object: runtime.RawExtension{Object: p}}) // who has gone misses nothing
	}
	// The list is over: nobody was in it.
	send(version{watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}})
	for n := 0; ; {
		pods, more := s.after(n)
		for _, v := range pods {
			send(v)
		}
		n += len(pods)
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *apiServer) record(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	event, ok := object.(*corev1.Event)
	if err != nil || !ok {
		http.Error(w, "no Event", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.events = append(s.events, event)
	s.changed()
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(event)
}

// await waits for an Event about a pod that matches.
func (s *apiServer) await(t *testing.T, podUID string, matches func(*corev1.Event) bool) {
	t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		events, more := s.events, s.more
		s.mu.Unlock()
		for _, e := range events {
			if string(e.InvolvedObject.UID) == podUID && matches(e) {
				return
			}
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("the Event was not recorded; there are %d others", len(events))
		}
	}
}

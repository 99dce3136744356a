package nodepods

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies/api"
)

// largePods serves pods that are as large as the API server takes them, with a forged promise as long as annotations may be. Without
// streams it is as API servers before watch-lists are.
type largePods struct {
	*testing.T
	pods    int
	streams bool
	peak    atomic.Uint64
}

const (
	protobuf  = "application/vnd.kubernetes.protobuf"
	goLimit   = 100 << 20 // GOMEMLIMIT of the DaemonSet
	mostBytes = 112 << 20 // of the limit of 128 MiB
)

func (l *largePods) pod(i int) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: fmt.Sprintf("large-%d", i), UID: "uid-large", ResourceVersion: "7",
			Annotations: map[string]string{api.AnnotationPromise: strings.Repeat("x", 250<<10)}},
		Spec: corev1.PodSpec{NodeName: nodeName,
			Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "FILL", Value: strings.Repeat("x", 1<<20)}}}}},
	}
}

func (l *largePods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	watched, initial := q.Get("watch") == "true", q.Get("sendInitialEvents") == "true"
	switch info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobuf); {
	case initial && !l.streams:
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
	case watched:
		w.Header().Set("Content-Type", protobuf+";stream=watch")
		events := streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w), info.StreamSerializer.Serializer)
		for i := 0; initial && i < l.pods; i++ {
			l.send(events, info.Serializer, "ADDED", l.pod(i))
		}
		if initial {
			end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7",
				Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
			end.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
			l.send(events, info.Serializer, "BOOKMARK", end)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		first, _ := strconv.Atoi(q.Get("continue"))
		limit, _ := strconv.Atoi(q.Get("limit"))
		page := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		for i := first; i < l.pods && (limit == 0 || i < first+limit); i++ {
			page.Items = append(page.Items, *l.pod(i))
		}
		if next := first + len(page.Items); next < l.pods {
			page.Continue = strconv.Itoa(next)
		}
		w.Header().Set("Content-Type", protobuf)
		if err := info.Serializer.Encode(page, w); err != nil && r.Context().Err() == nil {
			l.Error(err)
		}
		l.observe()
	}
}

func (l *largePods) send(events streaming.Encoder, objects runtime.Encoder, kind string, pod *corev1.Pod) {
	raw, err := runtime.Encode(objects, pod)
	if err == nil {
		err = events.Encode(&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}})
	}
	if err != nil {
		l.Error(err)
	}
	l.observe()
}

// observe keeps the most memory that the program has had of the operating system.
func (l *largePods) observe() {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	l.peak.Store(max(l.peak.Load(), s[0].Value.Uint64()-s[1].Value.Uint64()))
}

// TestLargePods: whoever may make pods can bind any number of them to a node.
func TestLargePods(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(goLimit))
	for name, l := range map[string]*largePods{
		"a streamed list": {pods: 1000, streams: true},
		"a list in pages": {pods: 200}, // which this program makes, too, beneath the limit: the collector takes most of the time
	} {
		t.Run(name, func(t *testing.T) {
			debug.FreeOSMemory()
			l.T = t
			server := httptest.NewServer(l)
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL,
				ContentConfig: rest.ContentConfig{ContentType: protobuf, AcceptContentTypes: protobuf}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			p := New(client, nodeName, slog.New(slog.DiscardHandler))
			go p.Run(ctx)
			for !p.Synced() {
				select {
				case <-ctx.Done():
					t.Fatal("the pods are not read")
				case <-time.After(10 * time.Millisecond):
				}
			}
			if _, read := p.Bare("uid-large"); !read {
				t.Error("none of the pods was read")
			}
			l.observe()
			t.Logf("%d pods of 1.3 MB: at most %d MiB", l.pods, l.peak.Load()>>20)
			if got := l.peak.Load(); got > mostBytes {
				t.Errorf("at most %d MiB, want %d", got>>20, mostBytes>>20)
			}
		})
	}
}

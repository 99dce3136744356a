package boundedtest

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// BinaryServer lists and watches pods in Kubernetes' binary form. A watch begins with all of them.
type BinaryServer struct {
	Pods []corev1.Pod
	// Last is the event that ends a watch. Optional.
	Last *watch.Event
	// NoWatchedLists has clients list the pods first.
	NoWatchedLists bool
}

// Start serves until the test ends, and returns how clients find the server.
func (s BinaryServer) Start(t testing.TB) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := r.URL.Query().Get("sendInitialEvents") != ""
		switch {
		case r.URL.Query().Get("watch") == "":
			w.Header().Set("Content-Type", kuberuntime.ContentTypeProtobuf)
			_, _ = w.Write(encode(t, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: s.Pods}))
			return
		case whole && s.NoWatchedLists:
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Content-Type", kuberuntime.ContentTypeProtobuf+";stream=watch")
		if whole {
			for i := range s.Pods {
				_, _ = w.Write(Frame(t, watch.Event{Type: watch.Added, Object: &s.Pods[i]}))
			}
			_, _ = w.Write(Frame(t, watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}}))
		}
		if s.Last != nil {
			_, _ = w.Write(Frame(t, *s.Last))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: kuberuntime.ContentTypeProtobuf,
		AcceptContentTypes: kuberuntime.ContentTypeProtobuf}}
}

// Frame is an event as it is sent.
func Frame(t testing.TB, e watch.Event) []byte {
	t.Helper()
	text, err := (&metav1.WatchEvent{Type: string(e.Type), Object: kuberuntime.RawExtension{Raw: encode(t, e.Object)}}).Marshal()
	if err != nil {
		t.Error(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func encode(t testing.TB, object kuberuntime.Object) []byte {
	t.Helper()
	info, ok := kuberuntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), kuberuntime.ContentTypeProtobuf)
	if !ok {
		t.Error("Kubernetes' binary form is not known")
	}
	text, err := kuberuntime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), object)
	if err != nil {
		t.Error(err)
	}
	return text
}

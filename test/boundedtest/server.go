package boundedtest

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// BinaryServer answers watches of one kind in Kubernetes' binary form, which begin with all objects.
type BinaryServer struct {
	List kuberuntime.Object // of at least one
	// Last is the event that ends a watch. Optional.
	Last *watch.Event
}

// Start serves until the test ends, and returns how clients find the server.
func (s BinaryServer) Start(t testing.TB) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kuberuntime.ContentTypeProtobuf+";stream=watch")
		_, _ = w.Write(s.initial(t))
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

// initial are the events of the list, and the bookmark after them.
func (s BinaryServer) initial(t testing.TB) (out []byte) {
	var last kuberuntime.Object
	err := meta.EachListItem(s.List, func(object kuberuntime.Object) error {
		out, last = append(out, Frame(t, watch.Event{Type: watch.Added, Object: object})...), object.DeepCopyObject()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	about, err := meta.Accessor(last)
	if err != nil {
		t.Error(err)
		return nil
	}
	about.SetResourceVersion("7")
	about.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return append(out, Frame(t, watch.Event{Type: watch.Bookmark, Object: last})...)
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

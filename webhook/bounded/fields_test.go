package bounded

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/test/boundedtest"
)

var someFields = FieldsOf[*corev1.Pod](map[string][]string{
	"metadata": {"name", "labels", "resourceVersion"}, "spec": {"nodeName", "tolerations"}, "spec.containers": {"image"},
})

func manyFields() corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train", ResourceVersion: "7", Labels: map[string]string{"a": "b", "c": "d"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}}},
		Spec: corev1.PodSpec{NodeName: "node-1", ServiceAccountName: "s", Volumes: []corev1.Volume{{Name: "v"}},
			Tolerations: []corev1.Toleration{{Key: "k", Value: "v"}},
			Containers: []corev1.Container{{Name: "c", Image: strings.Repeat("i", 300), Command: []string{"x"}},
				{Name: "d", Image: "j", Env: []corev1.EnvVar{{Name: "E"}}}, {Name: "no image"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func fewFields() corev1.Pod {
	pod := manyFields()
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train", Labels: pod.Labels, ResourceVersion: "7"},
		Spec: corev1.PodSpec{NodeName: "node-1", Tolerations: pod.Spec.Tolerations,
			Containers: []corev1.Container{{Image: pod.Spec.Containers[0].Image}, {Image: "j"}, {}}}}
}

// TestOnly: of lists and watches the fields alone are decoded, and a Status is left whole.
func TestOnly(t *testing.T) {
	t.Parallel()
	want := fewFields()
	gone := apierrors.NewResourceExpired("too old").Status()
	config := boundedtest.BinaryServer{Pods: []corev1.Pod{manyFields(), manyFields()}, Last: &watch.Event{Type: watch.Error, Object: &gone}}.Start(t)
	config.Wrap(Limit)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	source := From(client, client.CoreV1().Pods(""), nil).Only(someFields)
	n := 0
	version, err := source.Each(t.Context(), metav1.ListOptions{}, func(object runtime.Object) error {
		n++
		if diff := cmp.Diff(&want, object); diff != "" {
			t.Error(diff)
		}
		return nil
	})
	if err != nil || version != "7" || n != 2 {
		t.Errorf("%v: %d pods of version %q are listed", err, n, version)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := source.watch(ctx, metav1.ListOptions{SendInitialEvents: new(true), Watch: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if e := <-events.ResultChan(); e.Type != watch.Added || !cmp.Equal(&want, e.Object) {
			t.Error(e.Type, cmp.Diff(&want, e.Object))
		}
	}
	if e := <-events.ResultChan(); e.Type != watch.Bookmark || e.Object.(*corev1.Pod).ResourceVersion != "7" {
		t.Errorf("%s %v", e.Type, e.Object)
	}
	if e := <-events.ResultChan(); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("%s %v", e.Type, e.Object)
	}
}

// TestOddWatch: what is no event of an object is left as it is, and one that is too large ends the watch.
func TestOddWatch(t *testing.T) {
	t.Parallel()
	pod := manyFields()
	good := boundedtest.Frame(t, watch.Event{Type: watch.Added, Object: &pod})
	for name, c := range map[string]struct {
		body string
		as   bool // it is read as it is
		err  error
	}{
		"empty":           {"", true, io.EOF},
		"no message":      {"\x00\x00\x00\x03abc", true, io.EOF},
		"an empty one":    {"\x00\x00\x00\x00", true, io.EOF},
		"another form":    {"\x00\x00\x00\x08\x12\x06\x0a\x04abcd", true, io.EOF},
		"cut in a length": {string(good) + "\x00\x00", false, io.ErrUnexpectedEOF},
		"cut in an event": {string(good[:len(good)-1]), false, io.ErrUnexpectedEOF},
		"too large":       {"\x01\x00\x00\x01abc", false, nil},
	} {
		for _, read := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			body := someFields.watched(io.NopCloser(read(strings.NewReader(c.body))))
			var got bytes.Buffer
			_, err := got.ReadFrom(read(body))
			if c.err == io.EOF && err != nil || c.err != io.EOF && err == nil || c.err == io.ErrUnexpectedEOF && err != c.err {
				t.Errorf("%s: %v", name, err)
			}
			if c.as && got.String() != c.body {
				t.Errorf("%s: %q", name, got.String())
			}
		}
	}
}

// FuzzOnly: a message that is cut to all its fields is the same object, and no message does harm.
func FuzzOnly(f *testing.F) {
	pod := manyFields()
	text, err := pod.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("\x0a\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var before, after corev1.Pod
		out := someFields.cutOr(text)
		if before.Unmarshal(text) != nil {
			return
		}
		if err := after.Unmarshal(out); err != nil {
			t.Fatal(err)
		}
		if after.Name != before.Name || after.Spec.NodeName != before.Spec.NodeName || len(after.Spec.Containers) != len(before.Spec.Containers) {
			t.Errorf("%v became %v", before, after)
		}
	})
}

// Package boundedtest measures copies of objects that are as large as the API server takes.
package boundedtest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Largest is the largest object that etcd takes, in bytes.
const Largest = 1536 << 10

// KeptOf returns the bytes of memory that remain of each object. It fails if fewer are counted, unless none are.
func KeptOf(t *testing.T, keep func(kuberuntime.Object) (kuberuntime.Object, int), object func(i int) kuberuntime.Object) int {
	t.Helper()
	const n = 16
	kept, counted := make([]any, n), 0
	memory := func() int {
		for range 3 { // one collection releases unique handles, and the next collects them
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := memory()
	for i := range kept {
		var size int
		kept[i], size = keep(object(i))
		counted = max(counted, size)
	}
	each := (memory() - before) / n
	runtime.KeepAlive(kept)
	if counted > 0 && each > counted+1024 {
		t.Errorf("%d bytes are kept of each, and %d counted", each, counted)
	}
	return each
}

// Texts are n distinct strings of the size.
func Texts(n, size int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%0*d", size, i))
	}
	return out
}

// Meta is metadata as large as its author can make it: labels, annotations, owners or finalizers, by i.
func Meta(i, size int) metav1.ObjectMeta {
	o := metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprint("o", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: "1",
		Labels: map[string]string{}, Annotations: map[string]string{}}
	switch i % 4 {
	case 0:
		for _, key := range Texts(size/130, 63) {
			o.Labels[key] = strings.Repeat("v", 63)
		}
	case 1:
		o.Annotations["notes"] = strings.Repeat("n", min(size, 256<<10))
	case 2:
		for _, name := range Texts(size/1000, 900) {
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: "u"})
		}
		o.OwnerReferences = append(o.OwnerReferences,
			metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: types.UID(strings.Repeat("u", size/2)), Controller: new(true)})
	case 3:
		o.Finalizers = Texts(size/320, 300)
	}
	return o
}

package ledger

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// maxShown bounds the bytes of ledgers that a StoreWatch keeps: half of it, since they are all in one namespace. Others are read.
const maxShown = 16 << 20

// StoreWatch watches the ledgers of a ClusterStore.
type StoreWatch struct {
	namespace string
	informer  cache.SharedIndexInformer
}

// NewStoreWatch makes the watch of a namespace's ledgers.
func NewStoreWatch(client kubernetes.Interface, namespace string) *StoreWatch {
	labeled := func(o *metav1.ListOptions) { o.LabelSelector = Label + "=true" }
	return &StoreWatch{namespace: namespace,
		informer: bounded.From(client, client.CoreV1().ConfigMaps(namespace), labeled).Informer(
			bounded.Kept{Name: "ledgers", Of: shownLedger, Bytes: maxShown}, cache.Indexers{})}
}

// shownLedger is the copy of a ledger's ConfigMap: what Shown needs, so that its size counts whole.
func shownLedger(object runtime.Object) (runtime.Object, int) {
	c, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, 0
	}
	data := c.Data[documentKey]
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace, UID: c.UID, ResourceVersion: c.ResourceVersion},
		Data:       map[string]string{documentKey: data},
	}, len(c.Name) + len(data)
}

// Run watches until ctx ends.
func (w *StoreWatch) Run(ctx context.Context) { w.informer.RunWithContext(ctx) }

// Shown is Options.Shown.
func (w *StoreWatch) Shown(name string) (Object, bool) {
	found, _, _ := w.informer.GetStore().GetByKey(w.namespace + "/" + name) // a store in memory has no errors
	c, ok := found.(*corev1.ConfigMap)
	return objectOf(c), ok
}

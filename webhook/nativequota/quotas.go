package nativequota

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// Quotas caches the cluster's ResourceQuotas.
type Quotas struct{ informer cache.SharedIndexInformer }

// cachedQuota is a ResourceQuota in the cache: of one that limits no GPU resource, only its metadata.
type cachedQuota struct {
	metav1.ObjectMeta
	native []accounting.NativeQuota
}

// maxQuotas bounds the copies of all, in bytes: whoever may write ResourceQuotas chooses how large they are.
const maxQuotas = 16 << 20

// NewQuotas prepares a Quotas. It is empty until its Informer runs. full is called when a namespace has more than is kept.
func NewQuotas(client kubernetes.Interface, full func(kind, namespace string)) *Quotas {
	return &Quotas{bounded.From(client, client.CoreV1().ResourceQuotas(metav1.NamespaceAll), nil).Informer(
		bounded.Kept{Name: "ResourceQuotas", Of: trim, Bytes: maxQuotas, Full: full},
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

// Informer returns the informer of ResourceQuotas, which the caller runs.
func (q *Quotas) Informer() cache.SharedIndexInformer { return q.informer }

// trim reads a ResourceQuota once, when it enters the cache.
func trim(object runtime.Object) (runtime.Object, int) {
	quota, ok := object.(*corev1.ResourceQuota)
	if !ok {
		return object, 0
	}
	k := &cachedQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quota.Name, Namespace: quota.Namespace, UID: quota.UID, ResourceVersion: quota.ResourceVersion},
		native:     accounting.NativeQuotasOf(quota),
	}
	return k, len(k.native)*nativeSize + 1<<10
}

// nativeSize is about the memory of a limit.
const nativeSize = 512

// GetObjectKind implements runtime.Object.
func (k *cachedQuota) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object: it never changes.
func (k *cachedQuota) DeepCopyObject() runtime.Object { return k }

// In returns the limits on GPU resources that ResourceQuotas set in a namespace.
func (q *Quotas) In(namespace string) (out []accounting.NativeQuota) {
	objects, _ := q.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	for _, object := range objects {
		if k, ok := object.(*cachedQuota); ok {
			out = append(out, k.native...)
		}
	}
	return out
}

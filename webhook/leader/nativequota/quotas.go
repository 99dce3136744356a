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
	spec   corev1.ResourceQuotaSpec // of one with the name of gpuslice's own
}

// Bounds on copies: whoever may write ResourceQuotas chooses how large they are.
const (
	maxOwnQuota = 16 << 10 // bytes of one with the name of gpuslice's own: a larger one is not kept, so that it is rewritten
	maxQuotas   = 16 << 20 // bytes of all
)

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
	size := len(k.native) * nativeSize
	if quota.Name == accounting.WrittenQuotaName {
		meta := metav1.ObjectMeta{Labels: quota.Labels, Annotations: quota.Annotations}
		if own := meta.Size() + quota.Spec.Size(); own <= maxOwnQuota {
			k.Labels, k.Annotations, k.spec = quota.Labels, quota.Annotations, quota.Spec
			size += 4 * own
		} else {
			k.Labels = map[string]string{accounting.LabelQuota: quota.Labels[accounting.LabelQuota]}
		}
	}
	return k, size + 1<<10
}

// nativeSize is about the memory of a limit.
const nativeSize = 512

// GetObjectKind implements runtime.Object.
func (k *cachedQuota) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object: it never changes.
func (k *cachedQuota) DeepCopyObject() runtime.Object { return k }

// In returns the limits on GPU resources that ResourceQuotas of others set in a namespace.
func (q *Quotas) In(namespace string) (out []accounting.NativeQuota) {
	objects, _ := q.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	for _, object := range objects {
		if k, ok := object.(*cachedQuota); ok {
			out = append(out, k.native...)
		}
	}
	return out
}

// ownQuota returns the namespace's ResourceQuota with the name of gpuslice's own; nil if there is none.
func (q *Quotas) ownQuota(namespace string) *cachedQuota {
	object, _, _ := q.informer.GetStore().GetByKey(namespace + "/" + accounting.WrittenQuotaName)
	k, _ := object.(*cachedQuota)
	return k
}

// managed reports whether gpuslice wrote the ResourceQuota.
func (k *cachedQuota) managed() bool { return k.Labels[accounting.LabelQuota] == "true" }

// ownQuotas returns the ResourceQuotas of all namespaces with the name of gpuslice's own.
func (q *Quotas) ownQuotas() (out []*cachedQuota) {
	for _, object := range q.informer.GetStore().List() {
		if k, ok := object.(*cachedQuota); ok && k.Name == accounting.WrittenQuotaName {
			out = append(out, k)
		}
	}
	return out
}

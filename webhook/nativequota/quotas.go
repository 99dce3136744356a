package nativequota

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies"
)

// Quotas caches the cluster's ResourceQuotas.
type Quotas struct{ informer cache.SharedIndexInformer }

// cachedQuota is a ResourceQuota in the cache: of one that limits no GPU resource, only its metadata.
type cachedQuota struct {
	metav1.ObjectMeta
	native []policies.NativeQuota
	spec   corev1.ResourceQuotaSpec // of one with the name of gpuslice's own
}

// NewQuotas prepares a Quotas. It is empty until its Informer runs.
func NewQuotas(client kubernetes.Interface) (*Quotas, error) {
	q := &Quotas{coreinformers.NewResourceQuotaInformer(client, metav1.NamespaceAll, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	if err := q.informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("set transform of resource quotas: %w", err)
	}
	return q, nil
}

// Informer returns the informer of ResourceQuotas, which the caller runs.
func (q *Quotas) Informer() cache.SharedIndexInformer { return q.informer }

// trim reads a ResourceQuota once, when it enters the cache.
func trim(object any) (any, error) {
	quota, ok := object.(*corev1.ResourceQuota)
	if !ok {
		return object, nil
	}
	k := &cachedQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quota.Name, Namespace: quota.Namespace, UID: quota.UID, ResourceVersion: quota.ResourceVersion},
		native:     policies.NativeQuotasOf(quota),
	}
	if quota.Name == policies.WrittenQuotaName {
		k.Labels, k.Annotations, k.spec = quota.Labels, quota.Annotations, quota.Spec
	}
	return k, nil
}

// In returns the limits on GPU resources that ResourceQuotas of others set in a namespace.
func (q *Quotas) In(namespace string) (out []policies.NativeQuota) {
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
	object, _, _ := q.informer.GetStore().GetByKey(namespace + "/" + policies.WrittenQuotaName)
	k, _ := object.(*cachedQuota)
	return k
}

// managed reports whether gpuslice wrote the ResourceQuota.
func (k *cachedQuota) managed() bool { return k.Labels[policies.LabelQuota] == "true" }

// ownQuotas returns the ResourceQuotas of all namespaces with the name of gpuslice's own.
func (q *Quotas) ownQuotas() (out []*cachedQuota) {
	for _, object := range q.informer.GetStore().List() {
		if k, ok := object.(*cachedQuota); ok && k.Name == policies.WrittenQuotaName {
			out = append(out, k)
		}
	}
	return out
}

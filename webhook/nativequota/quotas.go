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

// Quotas is what is known of the cluster's ResourceQuotas.
type Quotas struct{ informer cache.SharedIndexInformer }

// kept is what is kept of a ResourceQuota: of one that limits no GPU resource, its name alone.
type cachedQuota struct {
	metav1.ObjectMeta
	native []policies.NativeQuota
	spec   corev1.ResourceQuotaSpec // of one that has the name of ours
}

// NewQuotas prepares a Quotas. Its Informer must be running for it to know anything.
func NewQuotas(client kubernetes.Interface) (*Quotas, error) {
	q := &Quotas{coreinformers.NewResourceQuotaInformer(client, metav1.NamespaceAll, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	if err := q.informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("set transform of resource quotas: %w", err)
	}
	return q, nil
}

// Informer is what knows of the ResourceQuotas. Somebody else runs it.
func (q *Quotas) Informer() cache.SharedIndexInformer { return q.informer }

// keep reads a ResourceQuota once, when it enters the cache.
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

// In are the limits on GPU resources that others set in a namespace.
func (q *Quotas) In(namespace string) (out []policies.NativeQuota) {
	objects, _ := q.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	for _, object := range objects {
		if k, ok := object.(*cachedQuota); ok {
			out = append(out, k.native...)
		}
	}
	return out
}

// written is the ResourceQuota of the namespace that has the name of ours; nil: there is none.
func (q *Quotas) ownQuota(namespace string) *cachedQuota {
	object, _, _ := q.informer.GetStore().GetByKey(namespace + "/" + policies.WrittenQuotaName)
	k, _ := object.(*cachedQuota)
	return k
}

// ours says that gpuslice wrote it.
func (k *cachedQuota) managed() bool { return k.Labels[policies.LabelQuota] == "true" }

// allWritten are the ResourceQuotas of all namespaces that have the name of ours.
func (q *Quotas) ownQuotas() (out []*cachedQuota) {
	for _, object := range q.informer.GetStore().List() {
		if k, ok := object.(*cachedQuota); ok && k.Name == policies.WrittenQuotaName {
			out = append(out, k)
		}
	}
	return out
}

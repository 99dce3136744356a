package watcher

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// informers are those of a Watcher, but for ResourceQuotas.
type informers struct {
	policies, tenants, state, namespaces, nodes, classes, limitRanges cache.SharedIndexInformer
}

// newInformers makes the informers. touch is called when something that a snapshot is made of has changed, touchNodes when it
// is a node, touchTenants when it is a tenant's own document alone; namespaces are looked up for each request instead.
func newInformers(options Options, touch, touchNodes, touchTenants func()) (informers, error) {
	client := options.Client
	configMaps := func(namespace string, narrow func(*metav1.ListOptions), k bounded.Kept) cache.SharedIndexInformer {
		return bounded.From(client, client.CoreV1().ConfigMaps(namespace), narrow).Informer(k, cache.Indexers{})
	}
	named := func(name string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		}
	}
	full := reportFull(options.Log)
	w := informers{
		policies: configMaps(options.Namespace, func(o *metav1.ListOptions) {
			o.LabelSelector = labels.Set{api.LabelPolicy: "true"}.String()
		}, bounded.Kept{Name: "policies", Of: slim}),
		// The right to list and watch is limited to this name, so the selector must be exactly this.
		tenants: configMaps(metav1.NamespaceAll, named(api.TenantPolicyName),
			bounded.Kept{Name: "policies of tenants", Of: slimTenant, Bytes: maxTenants, Full: full}),
		state: configMaps(options.Namespace, named(cluster.StateName), bounded.Kept{Name: "state", Of: slim}),
		namespaces: bounded.From(client, client.CoreV1().Namespaces(), nil).Informer(
			bounded.Kept{Name: "namespaces", Of: slimNamespace, Least: &bounded.Kept{Of: unreadNamespace}, Bytes: cluster.MaxNamespaces, Full: full},
			cache.Indexers{}),
		nodes: bounded.From(client, client.CoreV1().Nodes(), nil).Informer(bounded.Kept{Name: "nodes", Of: slim}, cache.Indexers{}),
		classes: bounded.From(client, client.NodeV1().RuntimeClasses(), nil).
			Informer(bounded.Kept{Name: "RuntimeClasses", Of: slim}, cache.Indexers{}),
		limitRanges: bounded.From(client, client.CoreV1().LimitRanges(metav1.NamespaceAll), nil).Informer(
			bounded.Kept{Name: "LimitRanges", Of: slimLimitRange, Bytes: maxLimitRanges, Full: full},
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
	for _, informer := range []cache.SharedIndexInformer{w.policies, w.state, w.classes} {
		if _, err := informer.AddEventHandler(onChange(touch)); err != nil {
			return w, fmt.Errorf("watch: %w", err)
		}
	}
	if _, err := w.nodes.AddEventHandler(onChange(touchNodes)); err != nil {
		return w, fmt.Errorf("watch: %w", err)
	}
	if _, err := w.tenants.AddEventHandler(onChange(touchTenants)); err != nil {
		return w, fmt.Errorf("watch: %w", err)
	}
	return w, nil
}

func (w informers) all() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{w.policies, w.tenants, w.state, w.namespaces, w.nodes, w.classes, w.limitRanges}
}

// onChange calls touch unless an update left everything as it was but the version: kubelets write each node's status
// every few minutes.
func onChange(touch func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { touch() },
		DeleteFunc: func(any) { touch() },
		UpdateFunc: func(before, after any) {
			a, isNode := before.(*corev1.Node)
			b, _ := after.(*corev1.Node)
			if isNode && sameNode(a, b) {
				return
			}
			touch()
		},
	}
}

// sameNode compares the parts of a node that slim keeps, without the condition: no decision reads it.
func sameNode(a, b *corev1.Node) bool {
	return maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) &&
		equality.Semantic.DeepEqual(a.Status.Capacity, b.Status.Capacity) &&
		equality.Semantic.DeepEqual(a.Status.RuntimeHandlers, b.Status.RuntimeHandlers)
}

// limitRangesOf are the LimitRanges of a namespace.
func (w informers) limitRangesOf(namespace string) (out []*corev1.LimitRange) {
	objects, _ := w.limitRanges.GetIndexer().ByIndex(cache.NamespaceIndex, namespace) // the index is there
	for _, object := range objects {
		if r, ok := object.(*corev1.LimitRange); ok {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

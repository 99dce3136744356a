package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	nodeinformers "k8s.io/client-go/informers/node/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/proofs"
)

// informers are those of a Watcher, but for ResourceQuotas.
type informers struct {
	policies, tenants, state, proofs, namespaces, nodes, classes, limitRanges cache.SharedIndexInformer
}

// newInformers makes the informers. touch is called when something that a snapshot is made of has changed, touchNodes when it
// is a node, touchTenants when it is a tenant's own document alone; namespaces are looked up for each request instead.
func newInformers(options Options, touch, touchNodes, touchTenants func()) (informers, error) {
	client := options.Client
	configMaps := func(namespace string, tweak func(*metav1.ListOptions)) cache.SharedIndexInformer {
		return coreinformers.NewFilteredConfigMapInformer(client, namespace, 0, cache.Indexers{}, tweak)
	}
	named := func(name string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		}
	}
	w := informers{
		policies: configMaps(options.Namespace, func(o *metav1.ListOptions) {
			o.LabelSelector = labels.Set{api.LabelPolicy: "true"}.String()
		}),
		// The right to list and watch is limited to this name, so the selector must be exactly this.
		tenants:    configMaps(metav1.NamespaceAll, named(api.TenantPolicyName)),
		state:      configMaps(options.Namespace, named(StateName)),
		proofs:     configMaps(options.Namespace, named(proofs.Name)),
		namespaces: coreinformers.NewNamespaceInformer(client, 0, cache.Indexers{}),
		nodes:      coreinformers.NewNodeInformer(client, 0, cache.Indexers{}),
		classes:    nodeinformers.NewRuntimeClassInformer(client, 0, cache.Indexers{}),
		limitRanges: coreinformers.NewLimitRangeInformer(client, metav1.NamespaceAll, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
	for _, informer := range w.all() {
		keep := slim
		if informer == w.tenants {
			keep = slimTenant
		}
		if err := informer.SetTransform(keep); err != nil {
			return w, fmt.Errorf("set transform: %w", err)
		}
	}
	for _, informer := range []cache.SharedIndexInformer{w.policies, w.state, w.proofs, w.classes} {
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
	return []cache.SharedIndexInformer{w.policies, w.tenants, w.state, w.proofs, w.namespaces, w.nodes, w.classes, w.limitRanges}
}

// proofsMap is the ConfigMap with what was proved of pools; nil: there is none.
func (w informers) proofsMap(namespace string) *corev1.ConfigMap {
	object, _, _ := w.proofs.GetStore().GetByKey(namespace + "/" + proofs.Name)
	m, _ := object.(*corev1.ConfigMap)
	return m
}

func synced(all []cache.SharedIndexInformer) []cache.InformerSynced {
	var out []cache.InformerSynced
	for _, informer := range all {
		out = append(out, informer.HasSynced)
	}
	return out
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

// sameNode compares what slim leaves of a node.
func sameNode(a, b *corev1.Node) bool {
	return maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) &&
		equality.Semantic.DeepEqual(a.Status.Capacity, b.Status.Capacity) &&
		equality.Semantic.DeepEqual(a.Status.RuntimeHandlers, b.Status.RuntimeHandlers)
}

// slim drops what no decision reads, before an object enters the cache: on large clusters that is most of it.
func slim(object any) (any, error) {
	switch o := object.(type) {
	case *corev1.Node:
		o.ManagedFields, o.Annotations = nil, nil // the latter are kilobytes where feature discovery runs
		o.Status = corev1.NodeStatus{Allocatable: o.Status.Allocatable, Capacity: o.Status.Capacity, RuntimeHandlers: o.Status.RuntimeHandlers}
	case *nodev1.RuntimeClass:
		o.ManagedFields = nil
	case *corev1.Namespace:
		o.ManagedFields, o.Annotations = nil, nil
	case *corev1.LimitRange:
		o.ManagedFields, o.Annotations = nil, nil
	case *corev1.ConfigMap:
		o.ManagedFields = nil
		o.Annotations = maps.Clone(o.Annotations)
		maps.DeleteFunc(o.Annotations, func(key, _ string) bool {
			return slices.Contains([]string{corev1.LastAppliedConfigAnnotation}, key)
		})
	}
	return object, nil
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

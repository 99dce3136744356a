package watcher

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// Bounds on a replica's copies of objects that tenants write: their authors choose how large they are, and how many
// there are.
const (
	maxTenants     = 32 << 20 // bytes of all tenants' own documents. A namespace without its own has the authority's policy
	maxLimitRanges = 16 << 20 // bytes of all LimitRanges
	maxNode        = 64 << 10 // bytes of a node. A larger one offers nothing
	maxItems       = 8        // of a LimitRange that are about containers or pods
	maxAmounts     = 32       // resources of each
)

// reportFull returns the function that reports a namespace with more than the bounds allow.
func reportFull(log logr.Logger) func(kind, namespace string) {
	return func(kind, namespace string) {
		log.Info("not all objects of a namespace are kept, since they are too many or too large: decisions about its pods take them for unknown",
			"kind", kind, "object", "Namespace "+namespace)
	}
}

// slim drops fields that no decision reads, before an object enters the cache: on large clusters that is most of it. It
// is for objects of administrators and kubelets.
func slim(object runtime.Object) (runtime.Object, int) {
	switch o := object.(type) {
	case *corev1.Node:
		// annotations are kilobytes where feature discovery runs
		o.ManagedFields, o.Annotations, o.OwnerReferences, o.Finalizers = nil, nil, nil, nil
		o.Status = corev1.NodeStatus{Allocatable: o.Status.Allocatable, Capacity: o.Status.Capacity, RuntimeHandlers: o.Status.RuntimeHandlers,
			Conditions: slices.DeleteFunc(o.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type != api.ConditionEnforcing })}
		if o.Size() > maxNode {
			return nil, 0
		}
	case *nodev1.RuntimeClass:
		o.ManagedFields = nil
	case *corev1.ConfigMap:
		o.ManagedFields = nil
		o.Annotations = maps.Clone(o.Annotations)
		delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, 0
}

// slimNamespace keeps a namespace's labels, and the annotation that gpuslice writes.
func slimNamespace(object runtime.Object) (runtime.Object, int) {
	ns, ok := object.(*corev1.Namespace)
	if !ok {
		return object, 0
	}
	size := 0
	for key, value := range ns.Labels {
		size += len(key) + len(value)
	}
	if size > cluster.MaxLabels {
		kept, _ := unreadNamespace(ns)
		return kept, 1
	}
	kept := namespaceOf(ns)
	kept.Labels = ns.Labels
	if closed, ok := ns.Annotations[api.AnnotationClosedClasses]; ok {
		kept.Annotations = map[string]string{api.AnnotationClosedClasses: strings.Clone(closed[:min(len(closed), cluster.MaxLabels)])}
		size += len(kept.Annotations[api.AnnotationClosedClasses])
	}
	return kept, size + 64*len(ns.Labels)
}

// unreadNamespace is a namespace whose labels are not kept: decisions about its pods have an error for a policy.
func unreadNamespace(object runtime.Object) (runtime.Object, int) {
	ns, ok := object.(*corev1.Namespace)
	if !ok {
		return object, 0
	}
	kept := namespaceOf(ns)
	kept.Labels = map[string]string{cluster.LabelsNotRead: "true"}
	if value, ok := ns.Labels[api.LabelBypass]; ok { // a bypass ends in any case
		kept.Labels[api.LabelBypass] = value
	}
	return kept, 0
}

func namespaceOf(ns *corev1.Namespace) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: ns.Name, UID: ns.UID, ResourceVersion: ns.ResourceVersion, CreationTimestamp: ns.CreationTimestamp,
		DeletionTimestamp: ns.DeletionTimestamp}}
}

// slimLimitRange keeps the limits on containers and pods, and of too many resources those of Kubernetes and NVIDIA.
func slimLimitRange(object runtime.Object) (runtime.Object, int) {
	r, ok := object.(*corev1.LimitRange)
	if !ok {
		return object, 0
	}
	kept := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace,
		Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion}}
	for i := range r.Spec.Limits {
		item := &r.Spec.Limits[i]
		if (item.Type == corev1.LimitTypeContainer || item.Type == corev1.LimitTypePod) && len(kept.Spec.Limits) < maxItems {
			kept.Spec.Limits = append(kept.Spec.Limits, corev1.LimitRangeItem{Type: item.Type,
				Max: few(item.Max), Min: few(item.Min), Default: few(item.Default), DefaultRequest: few(item.DefaultRequest)})
		}
	}
	return kept, 4*kept.Size() + 1<<10
}

// few are the resources of a list, or those of Kubernetes and NVIDIA alone, where there are too many.
func few(list corev1.ResourceList) corev1.ResourceList {
	if len(list) <= maxAmounts {
		return list
	}
	out := corev1.ResourceList{}
	for name, amount := range list {
		if len(out) < maxAmounts && (!strings.Contains(string(name), "/") && !strings.Contains(string(name), "hugepages") ||
			strings.HasPrefix(string(name), "nvidia.com/")) {
			out[name] = amount
		}
	}
	return out
}

// slimTenant keeps the fields of a tenant's ConfigMap that decide whether it can be used, within bounds: its author
// chooses how large it is, and every replica holds those of all namespaces.
func slimTenant(object runtime.Object) (runtime.Object, int) {
	m, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, 0
	}
	kept := &corev1.ConfigMap{}
	kept.Namespace, kept.Name, kept.ResourceVersion = m.Namespace, m.Name, m.ResourceVersion
	kept.Data = map[string]string{}
	if len(m.Data)+len(m.BinaryData) > 1 {
		kept.BinaryData = map[string][]byte{"more": nil} // that there are other keys is all that is kept of them
	}
	if text, ok := m.Data[api.PolicyKey]; ok {
		kept.Data[api.PolicyKey] = strings.Clone(text[:min(len(text), config.MaxTenantDocument+1)]) // a copy: a part would keep the whole
	}
	return kept, 2*len(kept.Data[api.PolicyKey]) + 1<<10
}

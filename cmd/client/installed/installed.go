// Package installed reads the inputs of an installation's decisions from the API server: policies, state, nodes, the
// guard's settings, pods and quotas. It writes nothing; an object that may not be read is an error, never a missing
// one.
package installed

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/admission/operator"
	"github.com/gpuslice/gpuslice/webhook/keys"
)

// Selector matches every object of an installation.
const Selector = "app.kubernetes.io/name=gpuslice"

// webhookSelector matches the Deployment of the webhook and its pods.
const webhookSelector = Selector + ",app.kubernetes.io/component=webhook"

// Policies returns the policy ConfigMaps of the system namespace.
func Policies(ctx context.Context, client kubernetes.Interface, system string) ([]*corev1.ConfigMap, error) {
	return kube.Read[*corev1.ConfigMap](ctx, "policies of namespace "+system, client.CoreV1().ConfigMaps(system).List,
		metav1.ListOptions{LabelSelector: api.LabelPolicy + "=true"})
}

// PolicyDocuments are the documents of ConfigMaps, as they would be in a file.
func PolicyDocuments(maps []*corev1.ConfigMap, system string) (all []manifest.Policy, err error) {
	for _, m := range maps {
		o, err := manifest.FromCluster("v1", "ConfigMap", m)
		if err != nil {
			return nil, err
		}
		if p, ok := (manifest.PolicyReader{System: system}).ConfigMap(o); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// Tenants returns the tenants' own documents: of every namespace, or of one where the others may not be read.
func Tenants(ctx context.Context, client kubernetes.Interface, namespace string) ([]*corev1.ConfigMap, error) {
	all, err := kube.Read[*corev1.ConfigMap](ctx, "tenants' own policies", client.CoreV1().ConfigMaps(metav1.NamespaceAll).List,
		metav1.ListOptions{FieldSelector: "metadata.name=" + api.TenantPolicyName})
	if !apierrors.IsForbidden(err) || namespace == "" {
		return slices.DeleteFunc(all, func(m *corev1.ConfigMap) bool { return m.Name != api.TenantPolicyName }), err
	}
	own, err := configMap(ctx, client, namespace, api.TenantPolicyName, "own policy of namespace "+namespace)
	if own == nil {
		return nil, err
	}
	return []*corev1.ConfigMap{own}, nil
}

// LimitRanges returns the LimitRanges of every namespace, or of one where the others may not be read, by namespace.
func LimitRanges(ctx context.Context, client kubernetes.Interface, namespace string) (map[string][]*corev1.LimitRange, error) {
	all, err := readable(namespace, func(namespace string) ([]*corev1.LimitRange, error) {
		return kube.Read[*corev1.LimitRange](ctx, "LimitRanges", client.CoreV1().LimitRanges(namespace).List, metav1.ListOptions{})
	})
	out := map[string][]*corev1.LimitRange{}
	for _, r := range all {
		out[r.Namespace] = append(out[r.Namespace], r)
	}
	return out, err
}

// Snapshot is the input of a replica's decisions, without the guard, on which no figure depends.
func Snapshot(ctx context.Context, client kubernetes.Interface, system string) (*cluster.Snapshot, error) {
	objects, err := Objects(ctx, client, system)
	if err != nil {
		return nil, err
	}
	return cluster.ReadSnapshot(objects), nil
}

// Objects are the objects of which Snapshot is made.
func Objects(ctx context.Context, client kubernetes.Interface, system string) (out cluster.Objects, err error) {
	if out.Policies, err = Policies(ctx, client, system); err != nil {
		return out, err
	}
	tenants, err := Tenants(ctx, client, "")
	if err != nil {
		return out, err
	}
	out.Tenants = slices.DeleteFunc(tenants, func(m *corev1.ConfigMap) bool { return m.Namespace == system })
	if out.State, err = State(ctx, client, system); err != nil {
		return out, err
	}
	nodes, err := Nodes(ctx, client)
	if err != nil {
		return out, err
	}
	out.Source, err = Source(ctx, client, nodes)
	return out, err
}

// configMap reads one; nil: there is none.
func configMap(ctx context.Context, client kubernetes.Interface, namespace, name, what string) (*corev1.ConfigMap, error) {
	found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the %s: %w", what, err)
	}
	return found, nil
}

// State returns the ConfigMap in which replicas keep policies and pools; nil: there is none yet.
func State(ctx context.Context, client kubernetes.Interface, system string) (*corev1.ConfigMap, error) {
	return configMap(ctx, client, system, cluster.StateName, "state ConfigMap")
}

// Nodes returns the nodes of the cluster.
func Nodes(ctx context.Context, client kubernetes.Interface) ([]*corev1.Node, error) {
	return kube.Read[*corev1.Node](ctx, "nodes", client.CoreV1().Nodes().List, metav1.ListOptions{})
}

// Namespaces returns the namespaces of the cluster.
func Namespaces(ctx context.Context, client kubernetes.Interface) (all []api.Namespace, err error) {
	list, err := kube.Read[*corev1.Namespace](ctx, "namespaces", client.CoreV1().Namespaces().List, metav1.ListOptions{})
	for _, ns := range list {
		all = append(all, api.Namespace{Name: ns.Name, Labels: ns.Labels})
	}
	return all, err
}

// Source has the objects from which the pools of the nodes are read. Beside an error it has the nodes. A cluster
// that allocates no devices dynamically has no ResourceSlices and no DeviceClasses.
func Source(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) (pools.Source, error) {
	published, err := kube.Read[*resourcev1.ResourceSlice](ctx, "ResourceSlices",
		client.ResourceV1().ResourceSlices().List, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return pools.Source{Nodes: nodes}, nil
	}
	if err != nil {
		return pools.Source{Nodes: nodes}, err
	}
	classes, err := kube.Read[*resourcev1.DeviceClass](ctx, "DeviceClasses", client.ResourceV1().DeviceClasses().List, metav1.ListOptions{})
	if err != nil {
		return pools.Source{Nodes: nodes}, err
	}
	source := pools.Source{Nodes: nodes, Slices: published, Classes: map[string]*resourcev1.DeviceClass{}}
	for _, c := range classes {
		source.Classes[c.Name] = c
	}
	return source, nil
}

// Runtimes returns the cluster's facts about how a guard can reach the driver. ClusterPolicies that may not be read
// count as none, as they do for the webhook.
func Runtimes(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface) (pools.Runtimes, error) {
	classes, err := kube.Read[*nodev1.RuntimeClass](ctx, "runtime classes", client.NodeV1().RuntimeClasses().List, metav1.ListOptions{})
	if err != nil {
		return pools.Runtimes{}, err
	}
	found, err := operator.Read(ctx, objects)
	if err != nil {
		return pools.Runtimes{}, err
	}
	return pools.RuntimesOf(classes, found), nil
}

// Deployment returns the Deployment of the webhook; nil: there is none.
func Deployment(ctx context.Context, client kubernetes.Interface, system string) (*appsv1.Deployment, error) {
	all, err := kube.Read[*appsv1.Deployment](ctx, "the webhook's Deployment",
		client.AppsV1().Deployments(system).List, metav1.ListOptions{LabelSelector: webhookSelector})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

// Keys returns the keys by which the installation knows its promises.
func Keys(ctx context.Context, client kubernetes.Interface, system string) (promise.Keys, error) {
	secret, err := client.CoreV1().Secrets(system).Get(ctx, keys.SecretName, metav1.GetOptions{})
	if err != nil {
		return promise.Keys{}, fmt.Errorf("read Secret %s of namespace %s: %w", keys.SecretName, system, err)
	}
	return keys.Of(secret), nil
}

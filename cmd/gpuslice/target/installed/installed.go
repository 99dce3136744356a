package installed

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
	"github.com/gpuslice/gpuslice/webhook/proofs"
)

// Selector matches every object of an installation.
const Selector = "app.kubernetes.io/name=gpuslice"

// webhookSelector matches the Deployment of the webhook and its pods.
const webhookSelector = Selector + ",app.kubernetes.io/component=webhook"

// Policies returns the policy ConfigMaps of the system namespace.
func Policies(ctx context.Context, client kubernetes.Interface, system string) ([]*corev1.ConfigMap, error) {
	list, err := client.CoreV1().ConfigMaps(system).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{api.LabelPolicy: "true"}.String(),
	})
	if err != nil {
		return nil, fmt.Errorf("read policies of namespace %s: %w", system, err)
	}
	return kube.Pointers(list.Items), nil
}

// Tenants returns the tenants' own documents: of every namespace, or of one where the others may not be read.
func Tenants(ctx context.Context, client kubernetes.Interface, namespace string) ([]*corev1.ConfigMap, error) {
	list, err := client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", api.TenantPolicyName).String(),
	})
	if err == nil {
		return slices.DeleteFunc(kube.Pointers(list.Items), func(m *corev1.ConfigMap) bool { return m.Name != api.TenantPolicyName }), nil
	}
	if !apierrors.IsForbidden(err) || namespace == "" {
		return nil, fmt.Errorf("read tenants' own policies: %w", err)
	}
	own, err := configMap(ctx, client, namespace, api.TenantPolicyName, "own policy of namespace "+namespace)
	if own == nil {
		return nil, err
	}
	return []*corev1.ConfigMap{own}, nil
}

// LimitRanges returns those of every namespace, or of one where the others may not be read, by namespace.
func LimitRanges(ctx context.Context, client kubernetes.Interface, namespace string) (map[string][]*corev1.LimitRange, error) {
	list, err := client.CoreV1().LimitRanges(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) && namespace != "" {
		list, err = client.CoreV1().LimitRanges(namespace).List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("read LimitRanges: %w", err)
	}
	out := map[string][]*corev1.LimitRange{}
	for i := range list.Items {
		out[list.Items[i].Namespace] = append(out[list.Items[i].Namespace], &list.Items[i])
	}
	return out, nil
}

// Snapshot is the input of a replica's decisions, without the guard, on which no figure depends.
func Snapshot(ctx context.Context, client kubernetes.Interface, system string) (*cluster.Snapshot, error) {
	objects, err := Objects(ctx, client, system)
	if err != nil {
		return nil, err
	}
	return cluster.ReadSnapshot(objects), nil
}

// Objects are those of which Snapshot is made.
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
	if out.Proofs, err = Proofs(ctx, client, system); err != nil {
		return out, err
	}
	nodes, err := Nodes(ctx, client)
	if err != nil {
		return out, err
	}
	out.Source, err = Source(ctx, client, nodes)
	return out, err
}

// Proofs returns the ConfigMap with the proofs of pools; nil: nothing was tried.
func Proofs(ctx context.Context, client kubernetes.Interface, system string) (*corev1.ConfigMap, error) {
	return configMap(ctx, client, system, proofs.Name, "ConfigMap of proofs")
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

// Advice returns the ConfigMaps with the recommended sizes.
func Advice(ctx context.Context, client kubernetes.Interface, system string) ([]*corev1.ConfigMap, error) {
	list, err := client.CoreV1().ConfigMaps(system).List(ctx, metav1.ListOptions{LabelSelector: advice.Label + "=true"})
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMaps of recommended sizes: %w", err)
	}
	return kube.Pointers(list.Items), nil
}

// State returns the ConfigMap in which replicas keep policies and pools; nil: there is none yet.
func State(ctx context.Context, client kubernetes.Interface, system string) (*corev1.ConfigMap, error) {
	return configMap(ctx, client, system, cluster.StateName, "state ConfigMap")
}

// Nodes returns the nodes of the cluster.
func Nodes(ctx context.Context, client kubernetes.Interface) ([]*corev1.Node, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	return kube.Pointers(list.Items), nil
}

// Runtimes returns the cluster's facts about how a guard can reach the driver. ClusterPolicies that may not be read
// count as none, as they do for the webhook.
func Runtimes(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface) (pools.Runtimes, error) {
	classes, err := client.NodeV1().RuntimeClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return pools.Runtimes{}, fmt.Errorf("read runtime classes: %w", err)
	}
	operator, err := cluster.ReadOperator(ctx, objects)
	if err != nil {
		return pools.Runtimes{}, err
	}
	return pools.RuntimesOf(kube.Pointers(classes.Items), operator), nil
}

// Deployment returns that of the webhook; nil: there is none.
func Deployment(ctx context.Context, client kubernetes.Interface, system string) (*appsv1.Deployment, error) {
	list, err := client.AppsV1().Deployments(system).List(ctx, metav1.ListOptions{LabelSelector: webhookSelector})
	if err != nil {
		return nil, fmt.Errorf("read the webhook's Deployment: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}

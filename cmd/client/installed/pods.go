package installed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	podresources "k8s.io/component-helpers/resource"

	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/policies/accounting"
)

// LivingPods returns the pods of the namespaces that have neither succeeded nor failed.
func LivingPods(ctx context.Context, client kubernetes.Interface, namespaces []string) (all []corev1.Pod, err error) {
	for _, name := range namespaces {
		options := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
		_, err := kube.EachPod(ctx, client.CoreV1().Pods(name), options, func(p *corev1.Pod) { all = append(all, *p) })
		if err != nil {
			return nil, fmt.Errorf("read pods of %s: %w", scopeOf(name), err)
		}
	}
	return all, nil
}

func scopeOf(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "every namespace"
	}
	return "namespace " + namespace
}

// Requested is how many units of a resource the pods on each node request.
func Requested(pods []corev1.Pod, resource string) map[string]int64 {
	held := map[string]int64{}
	for i := range pods {
		requests := podresources.PodRequests(&pods[i], podresources.PodResourcesOptions{})
		held[pods[i].Spec.NodeName] += Count(requests, resource)
	}
	return held
}

// Count is how many units of a resource a list has.
func Count(list corev1.ResourceList, name string) int64 {
	q := list[corev1.ResourceName(name)]
	return q.Value()
}

// NativeQuotas returns the limits that ResourceQuotas set on GPUs in a namespace.
func NativeQuotas(ctx context.Context, client kubernetes.Interface, namespace string) (out []accounting.NativeQuota, err error) {
	all, err := kube.Read[*corev1.ResourceQuota](ctx, "resource quotas of namespace "+namespace,
		client.CoreV1().ResourceQuotas(namespace).List, metav1.ListOptions{})
	for _, q := range all {
		out = append(out, accounting.NativeQuotasOf(q)...)
	}
	return out, err
}

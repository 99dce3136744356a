package installed

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies"
)

// podsPerPage is how many pods are read at once.
const podsPerPage = 500

// LivingPods returns the pods of the namespaces that have neither succeeded nor failed.
func LivingPods(ctx context.Context, client kubernetes.Interface, namespaces []string) (all []corev1.Pod, err error) {
	for _, name := range namespaces {
		options := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed", Limit: podsPerPage}
		for {
			list, err := client.CoreV1().Pods(name).List(ctx, options)
			if err != nil {
				return nil, fmt.Errorf("read pods of namespace %s: %w", name, err)
			}
			all = append(all, list.Items...)
			if options.Continue = list.Continue; options.Continue == "" {
				break
			}
		}
	}
	return all, nil
}

// NativeQuotas returns the limits that ResourceQuotas set on GPUs in a namespace.
func NativeQuotas(ctx context.Context, client kubernetes.Interface, namespace string) (out []policies.NativeQuota, err error) {
	list, err := client.CoreV1().ResourceQuotas(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read resource quotas of namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		out = append(out, policies.NativeQuotasOf(&list.Items[i])...)
	}
	return out, nil
}

package installed

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	podresources "k8s.io/component-helpers/resource"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
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
	all, err := kube.Read[*corev1.ResourceQuota](ctx, "resource quotas of namespace "+namespace, client.CoreV1().ResourceQuotas(namespace).List, metav1.ListOptions{})
	for _, q := range all {
		out = append(out, accounting.NativeQuotasOf(q)...)
	}
	return out, err
}

// workloadReader gathers workloads as they would stand in a file. The first error ends it.
type workloadReader struct {
	namespace string
	objects   []manifest.Object
	err       error
}

// Workloads are the objects of a namespace that create pods. Those that another one controls are left out, and so are
// Jobs that are over.
func Workloads(ctx context.Context, client kubernetes.Interface, namespace string) ([]manifest.Object, error) {
	g := &workloadReader{namespace: namespace}
	apps, batch := client.AppsV1(), client.BatchV1()
	readWorkloads(ctx, g, "apps/v1", "Deployment", apps.Deployments(namespace).List)
	readWorkloads(ctx, g, "apps/v1", "StatefulSet", apps.StatefulSets(namespace).List)
	readWorkloads(ctx, g, "apps/v1", "DaemonSet", apps.DaemonSets(namespace).List)
	readWorkloads(ctx, g, "batch/v1", "CronJob", batch.CronJobs(namespace).List)
	readWorkloads(ctx, g, "batch/v1", "Job", batch.Jobs(namespace).List)
	return g.objects, g.err
}

func readWorkloads[L runtime.Object](ctx context.Context, g *workloadReader, apiVersion, kind string, list kube.List[L]) {
	items, err := kube.Read[metav1.Object](ctx, kind+"s of namespace "+g.namespace, list, metav1.ListOptions{})
	g.err = cmp.Or(g.err, err)
	for _, item := range items {
		if metav1.GetControllerOf(item) != nil || over(item) {
			continue
		}
		o, err := manifest.FromCluster(apiVersion, kind, item)
		if err != nil {
			g.err = err
			return
		}
		g.objects = append(g.objects, o)
	}
}

// over reports whether an object is a Job that creates no more pods.
func over(item any) bool {
	job, ok := item.(*batchv1.Job)
	if !ok {
		return false
	}
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
}

package installed

import (
	"cmp"
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
)

// workloadReader gathers workloads as they would be in a file. It stops at the first error.
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

package installed

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/target/kube"
)

// workloadReader gathers workloads as they would stand in a file. The first error ends it.
type workloadReader struct {
	namespace string
	objects   []manifest.Object
	err       error
}

// Workloads are the objects of a namespace that create pods. Those that another one controls are left out, and so are
// Jobs that are over.
func Workloads(ctx context.Context, client kubernetes.Interface, namespace string) ([]manifest.Object, error) {
	g, o := &workloadReader{namespace: namespace}, metav1.ListOptions{}
	deployments, err := client.AppsV1().Deployments(namespace).List(ctx, o)
	if g.read("Deployment", err) {
		addWorkloads(g, "apps/v1", "Deployment", kube.Pointers(deployments.Items))
	}
	sets, err := client.AppsV1().StatefulSets(namespace).List(ctx, o)
	if g.read("StatefulSet", err) {
		addWorkloads(g, "apps/v1", "StatefulSet", kube.Pointers(sets.Items))
	}
	daemons, err := client.AppsV1().DaemonSets(namespace).List(ctx, o)
	if g.read("DaemonSet", err) {
		addWorkloads(g, "apps/v1", "DaemonSet", kube.Pointers(daemons.Items))
	}
	crons, err := client.BatchV1().CronJobs(namespace).List(ctx, o)
	if g.read("CronJob", err) {
		addWorkloads(g, "batch/v1", "CronJob", kube.Pointers(crons.Items))
	}
	jobs, err := client.BatchV1().Jobs(namespace).List(ctx, o)
	if g.read("Job", err) {
		addWorkloads(g, "batch/v1", "Job", kube.Pointers(jobs.Items))
	}
	return g.objects, g.err
}

func (g *workloadReader) read(kind string, err error) bool {
	if err != nil && g.err == nil {
		g.err = fmt.Errorf("read %ss of namespace %s: %w", kind, g.namespace, err)
	}
	return err == nil
}

func addWorkloads[T metav1.Object](g *workloadReader, apiVersion, kind string, items []T) {
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
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return true
		}
	}
	return false
}

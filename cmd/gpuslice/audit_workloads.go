package main

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// made gathers objects that make pods, as they would stand in a file. The first error ends it.
type made struct {
	namespace string
	objects   []object
	err       error
}

// workloads are the objects of a namespace that make pods. What another one makes is left out, and so are Jobs that are
// over.
func workloads(ctx context.Context, client kubernetes.Interface, namespace string) ([]object, error) {
	m, o := &made{namespace: namespace}, metav1.ListOptions{}
	deployments, err := client.AppsV1().Deployments(namespace).List(ctx, o)
	if m.read("Deployment", err) {
		add(m, "apps/v1", "Deployment", pointers(deployments.Items))
	}
	sets, err := client.AppsV1().StatefulSets(namespace).List(ctx, o)
	if m.read("StatefulSet", err) {
		add(m, "apps/v1", "StatefulSet", pointers(sets.Items))
	}
	daemons, err := client.AppsV1().DaemonSets(namespace).List(ctx, o)
	if m.read("DaemonSet", err) {
		add(m, "apps/v1", "DaemonSet", pointers(daemons.Items))
	}
	crons, err := client.BatchV1().CronJobs(namespace).List(ctx, o)
	if m.read("CronJob", err) {
		add(m, "batch/v1", "CronJob", pointers(crons.Items))
	}
	jobs, err := client.BatchV1().Jobs(namespace).List(ctx, o)
	if m.read("Job", err) {
		add(m, "batch/v1", "Job", pointers(jobs.Items))
	}
	return m.objects, m.err
}

func (m *made) read(kind string, err error) bool {
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("read %ss of namespace %s: %w", kind, m.namespace, err)
	}
	return err == nil
}

func add[T metav1.Object](m *made, apiVersion, kind string, items []T) {
	for _, item := range items {
		if metav1.GetControllerOf(item) != nil || over(item) {
			continue
		}
		item.SetManagedFields(nil)
		raw, err := json.Marshal(item)
		if err != nil {
			m.err = fmt.Errorf("%w: encode %s %s: %w", errInternal, kind, item.GetName(), err)
			return
		}
		m.objects = append(m.objects, object{
			at: source{file: fromCluster}, apiVersion: apiVersion, kind: kind, namespace: m.namespace, name: item.GetName(), labels: item.GetLabels(), raw: raw,
		})
	}
}

// over says that a Job makes no more pods.
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

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

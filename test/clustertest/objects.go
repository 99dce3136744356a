// Package clustertest makes the objects of a cluster that tests watch.
package clustertest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// PolicyMap is a policy ConfigMap at a resourceVersion.
func PolicyMap(name string, version int, document string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: api.SystemNamespace, ResourceVersion: fmt.Sprint(version), Labels: map[string]string{api.LabelPolicy: "true"},
		},
		Data: map[string]string{api.PolicyKey: "apiVersion: gpuslice.dev/v1\n" + document},
	}
}

// TenantMap is a tenant's own document in its namespace.
func TenantMap(namespace string, document string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: api.TenantPolicyName, Namespace: namespace, ResourceVersion: "20"},
		Data:       map[string]string{api.PolicyKey: "apiVersion: gpuslice.dev/v1\n" + document},
	}
}

// Edited is a copy of a ConfigMap after a change.
func Edited(m *corev1.ConfigMap, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	out := m.DeepCopy()
	change(out)
	return out
}

// Namespace is a namespace with labels.
func Namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// SharedL4 is a node with an L4 card that time-slicing shares under a name of its own.
func SharedL4(t testing.TB, name string) *corev1.Node {
	t.Helper()
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	if err != nil {
		t.Fatal(err)
	}
	nodes[0].Name = name
	return nodes[0]
}

// Settle lets informers and workers of a synctest bubble finish their work; informers poll their progress every 100 ms.
func Settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// Run calls run in a synctest bubble until end is called.
func Run(t testing.TB, run func(context.Context) error) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- run(ctx) }()
	Settle()
	return func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

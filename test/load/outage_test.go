package load

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TestQuotaAfterOutage creates as many pods as the limit allows while not all are reviewed. Of the many that come as soon as replicas are
// asked again, all are denied.
func TestQuotaAfterOutage(t *testing.T) {
	l := newLab(t)
	const limit, more = 4, 30
	outage := func(replicas ...int) func(*tenant, func()) {
		return func(_ *tenant, meanwhile func()) {
			for _, k := range replicas {
				l.Replicas[k].Kill()
			}
			meanwhile()
			l.start(replicas...)
		}
	}
	open := map[string]string{api.LabelFail: api.FailOpen}
	full := newTenant(l.Server.Client, 500, 0)
	l.govern([]*tenant{full}, nil)
	for k, c := range []struct {
		name   string
		labels map[string]string
		pass   func(one *tenant, meanwhile func())
	}{
		{"of one replica, in a namespace that fails open", open, outage(2)},
		{"of all replicas, in a namespace that fails open", open, outage(0, 1, 2)},
		{"a bypass", nil, func(one *tenant, meanwhile func()) { l.bypassed(one, full, meanwhile) }},
		{"a bypass, with new replicas after it", nil, func(one *tenant, meanwhile func()) {
			l.bypassed(one, full, func() { outage(0, 1, 2)(one, meanwhile) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := newTenant(l.Server.Client, uint64(501+k), limit)
			l.govern([]*tenant{one}, c.labels)
			pods := one.client.CoreV1().Pods(one.namespace)
			if _, err := pods.Create(t.Context(), slice("before"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := pods.Delete(t.Context(), "before", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
				t.Fatal(err)
			}
			c.pass(one, func() {
				for i := range limit {
					pod := slice(fmt.Sprint("unreviewed-", i))
					pod.Labels = nil
					pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu.shared": resource.MustParse("1")}
					if i == 0 {
						pod.Annotations = map[string]string{api.AnnotationPromise: "forged"}
					}
					if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			})
			crowd(t.Context(), one, more, more)
			if one.told["exceeded"] != more {
				t.Errorf("after %d pods of %d: %v", limit, limit, one.told)
			}
		})
	}
}

// start starts replicas that have ended.
func (l *lab) start(replicas ...int) {
	l.t.Helper()
	for _, k := range replicas {
		if err := l.Again(l.t.Context(), k); err != nil {
			l.t.Fatal(err)
		}
	}
}

// bypassed does something during a bypass of the namespace. It returns once the API server knows that the bypass has ended: that of
// another namespace, which is full, has ended later.
func (l *lab) bypassed(one, full *tenant, do func()) {
	l.t.Helper()
	l.bypass(one, "true")
	l.bypass(full, "true")
	l.awaitProbe(full, "created")
	do()
	l.bypass(one, "false")
	l.bypass(full, "false")
	l.awaitProbe(full, "exceeded")
}

func (l *lab) bypass(t *tenant, value string) {
	l.t.Helper()
	change := []byte(`{"metadata":{"labels":{"` + api.LabelBypass + `":"` + value + `"}}}`)
	if _, err := l.Server.Client.CoreV1().Namespaces().Patch(l.t.Context(), t.namespace,
		types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// awaitProbe returns once a dry run in the namespace has this outcome.
func (l *lab) awaitProbe(t *tenant, outcome string) {
	l.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(l.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = t.client.CoreV1().Pods(t.namespace).Create(ctx, slice("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return verdict(last) == outcome, nil
	})
	if err != nil {
		l.t.Fatalf("a pod in %s is not %s: %v", t.namespace, outcome, last)
	}
}

package apiserver

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/events"
)

// nativeQuota creates a ResourceQuota on nvidia.com/gpu as a cluster admin does, and counts it as its controller would:
// there is none here, and the server denies whatever a quota that was never counted is about.
func nativeQuota(t *testing.T, i *install.Installation, namespace, name, hard string, scopes ...corev1.ResourceQuotaScope) {
	t.Helper()
	list := corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse(hard)}
	quotas := i.Server.Client.CoreV1().ResourceQuotas(namespace)
	q, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ResourceQuotaSpec{Hard: list, Scopes: scopes}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q.Status = corev1.ResourceQuotaStatus{Hard: list, Used: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("0")}}
	if _, err := quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	err = i.Webhook.WaitState(t.Context(), "see the resource quota "+name,
		func(s install.State) bool { return s.ResourceQuota(namespace, name) != "" })
	if err != nil {
		t.Fatal(err)
	}
}

func TestNativeQuota(t *testing.T) {
	t.Run("admits as many renamed pods as it says", func(t *testing.T) {
		i := need(t)
		const ns = "native-old"
		setUpReapply(t, i, ns)
		nativeQuota(t, i, ns, "team-gpus", "2")
		var admitted atomic.Int64
		var running sync.WaitGroup
		for n := range 10 {
			running.Go(func() {
				_, err := i.Apply.Create(t.Context(), sliceOf(t, fmt.Sprintf("p-%d", n), ns, "4Gi"), metav1.CreateOptions{})
				switch {
				case err == nil:
					admitted.Add(1)
				case !strings.Contains(err.Error(), "exceeded quota: team-gpus (ResourceQuota), requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2"):
					t.Error(err)
				}
			})
		}
		running.Wait()
		if n := admitted.Load(); n != 2 {
			t.Errorf("%d pods were admitted, want 2", n)
		}
		// One that is left alone goes on being counted by Kubernetes itself, which cannot see the two.
		whole := podOf(t, "whole", ns, "spec:\n  containers:\n  - {name: a, image: busybox, resources: {limits: {nvidia.com/gpu: 2}}}\n")
		if _, err := i.Apply.Create(t.Context(), whole, metav1.CreateOptions{}); err == nil ||
			!strings.Contains(err.Error(), "exceeded quota: team-gpus (ResourceQuota)") {
			t.Errorf("two whole devices beside them: %v", err)
		}
	})
}

func TestNativeQuotaWarning(t *testing.T) {
	t.Run("authors read who counts their pods", func(t *testing.T) {
		i := need(t)
		const ns = "native-told"
		setUpReapply(t, i, ns)
		nativeQuota(t, i, ns, "team-gpus", "2")
		_, warnings, err := create(t.Context(), i, sliceOf(t, "p", ns, "4Gi"))
		if err != nil {
			t.Fatal(err)
		}
		const want = "ResourceQuota team-gpus counts nvidia.com/gpu; gpuslice counts this pod for it"
		if text := strings.Join(warnings, "\n"); strings.Count(text, want) != 1 {
			t.Errorf("warnings:\n%s", text)
		}
	})
}

// TestNativeQuotaScopes: the guard's containers have requests, so that no pod with one is of the least
// quality of service.
func TestNativeQuotaScopes(t *testing.T) {
	t.Run("are those of the pod as it is stored", func(t *testing.T) {
		i := need(t)
		for scope, second := range map[corev1.ResourceQuotaScope]bool{
			corev1.ResourceQuotaScopeNotBestEffort: false, corev1.ResourceQuotaScopeBestEffort: true,
			corev1.ResourceQuotaScopeTerminating: true, corev1.ResourceQuotaScopeNotTerminating: false,
		} {
			ns := "native-" + strings.ToLower(string(scope))
			setUpReapply(t, i, ns)
			nativeQuota(t, i, ns, "scoped", "1", scope)
			for n, want := range []bool{true, second} {
				pod, err := i.Apply.Create(t.Context(), sliceOf(t, fmt.Sprintf("p-%d", n), ns, "4Gi"), metav1.CreateOptions{})
				if (err == nil) != want {
					t.Errorf("%s: pod %d let in: %v, want %t", scope, n, err, want)
				}
				if qos, _, _ := unstructured.NestedString(objectOf(pod), "status", "qosClass"); err == nil && qos != "Burstable" {
					t.Errorf("%s: the pod is %s", scope, qos)
				}
			}
		}
	})
}

func objectOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

// wantEvent waits for an Event on an object that says so.
func wantEvent(t *testing.T, i *install.Installation, namespace, kind, name, text string) *corev1.Event {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		list, err := i.Server.Client.CoreV1().Events(namespace).List(t.Context(),
			metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		for n := range list.Items {
			if strings.Contains(list.Items[n].Message, text) {
				return &list.Items[n]
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no Event on %s %s that says %q: %+v", kind, name, text, list.Items)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestDenialEvents makes the owners itself: their controllers do not run here.
func TestDenialEvents(t *testing.T) {
	t.Run("owners of denied pods get an Event", func(t *testing.T) {
		i := need(t)
		const ns = "denied"
		setUpReapply(t, i, ns)
		template := "spec:\n  selector: {matchLabels: {app: w}}\n  template:\n    metadata: {labels: {app: w}}\n    spec: {containers: [{name: a, image: a}]}\n"
		made := func(kind, name string, owner *metav1.OwnerReference) metav1.OwnerReference {
			t.Helper()
			u := podOf(t, name, ns, template)
			u.SetAPIVersion("apps/v1")
			u.SetKind(kind)
			if owner != nil {
				u.SetOwnerReferences([]metav1.OwnerReference{*owner})
			}
			u, err := i.Apply.Create(t.Context(), u, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: u.GetUID(), Controller: new(true)}
		}
		deployment := made("Deployment", "web", nil)
		set := made("ReplicaSet", "web-abc", &deployment)
		dry := made("ReplicaSet", "dry", nil)
		deny := func(owner metav1.OwnerReference, options metav1.CreateOptions) {
			t.Helper()
			pod := sliceOf(t, "p-"+owner.Name, ns, "900Gi")
			pod.SetOwnerReferences([]metav1.OwnerReference{owner})
			if _, err := i.Apply.Create(t.Context(), pod, options); err == nil || !strings.Contains(err.Error(), "900Gi") {
				t.Fatalf("want a denial, got %v", err)
			}
		}
		deny(dry, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		deny(set, metav1.CreateOptions{})
		deny(set, metav1.CreateOptions{})
		for kind, name := range map[string]string{"ReplicaSet": "web-abc", "Deployment": "web"} {
			e := wantEvent(t, i, ns, kind, name, "gpuslice denied a pod: ")
			if e.Reason != events.ReasonDenied || e.Type != corev1.EventTypeWarning || !strings.Contains(e.Message, "900Gi") || e.Count != 1 {
				t.Errorf("event on %s: %+v", kind, e)
			}
		}
		list, err := i.Server.Client.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=dry"})
		if err != nil || len(list.Items) > 0 {
			t.Errorf("a dry run wrote Events: %+v, %v", list.Items, err)
		}
	})
}

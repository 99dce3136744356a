package apiserver

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/install"
)

// TestGuardFailures goes all the way: kubelets report guards, the leader writes what they come to, and the next pod is planned by that.
func TestGuardFailures(t *testing.T) {
	i := need(t)
	setUpReapply(t, i, "guards-a")
	for _, name := range []string{"guards-a", "guards-b", "guards-c"} {
		if err := i.Server.Namespace(t.Context(), name, nil); name != "guards-a" && err != nil {
			t.Fatal(err)
		}
		// A runtime class of its own: guards of other tests reach the driver without one.
		document := "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\nguard: {runtimeClassName: nvidia}\nnamespaces: {names: [" +
			name + "]}\npod: {tolerations: [{operator: Exists}]}\n"
		if err := i.Policy(t.Context(), name, []byte(document)); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("guards of one namespace that fail take the guard from no other", func(t *testing.T) {
		failing(t, i, "guards-a", "one", time.Minute)
		failing(t, i, "guards-a", "two", 2*time.Minute)
		awaitPlan(t, i, "guards-a", "the namespace's last guards there could not read the GPUs")
		awaitPlan(t, i, "guards-c", "")
	})
	t.Run("guards of two namespaces that fail take it from all", func(t *testing.T) {
		failing(t, i, "guards-b", "one", time.Minute)
		awaitPlan(t, i, "guards-c", "of pods in 2 namespaces, could not read the GPUs (guard.access: env, runtime class nvidia)")
	})
	t.Run("one guard that reads gives it back", func(t *testing.T) {
		guarding(t, i, "guards-c", "reads", 3*time.Minute)
		awaitPlan(t, i, "guards-a", "")
		awaitPlan(t, i, "guards-c", "")
	})
}

// guarding creates a pod whose guard runs since so long.
func guarding(t *testing.T, i *install.Installation, namespace, name string, since time.Duration) *corev1.Pod {
	t.Helper()
	if _, err := i.Apply.Create(t.Context(), podOf(t, name, namespace, manifests["label"]), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := i.Server.Client.CoreV1().Pods(namespace)
	bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "l4-1"}}
	if err := pods.Bind(t.Context(), bind, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-since))}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning,
		InitContainerStatuses: []corev1.ContainerStatus{
			{Name: limits.CheckContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}},
			{Name: limits.GuardContainer, State: runs, Started: new(true)}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: runs, Started: new(true)}}}
	if pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return pod
}

// failing creates a pod whose guard cannot read the GPUs. The Event is there before the guard has run for long.
func failing(t *testing.T, i *install.Installation, namespace, name string, since time.Duration) {
	t.Helper()
	pod := guarding(t, i, namespace, name, since)
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: pod.UID,
			FieldPath: "spec.initContainers{" + limits.GuardContainer + "}"},
		Reason: "Unhealthy", Type: corev1.EventTypeWarning,
		Message: "Liveness probe failed: gpuslice cannot enforce this pod's slice: initialise NVML: library not found",
		Source:  corev1.EventSource{Component: "kubelet", Host: "l4-1"}, ReportingController: "kubelet", ReportingInstance: "l4-1",
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	if _, err := i.Server.Client.CoreV1().Events(namespace).Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitPlan returns once new pods of the namespace are planned without a guard for a reason, or with one ("").
func awaitPlan(t *testing.T, i *install.Installation, namespace, reason string) {
	t.Helper()
	var warnings []string
	var tier string
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		c := &collector{}
		made, err := i.Apply.Warning(c).Create(ctx, podOf(t, "next", namespace, manifests["label"]),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err
		}
		warnings, tier = c.texts, made.GetAnnotations()[api.AnnotationPlanned]
		without := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "no guard is counted on") })
		if reason == "" {
			return !without && strings.Contains(tier, `"guard"`), nil
		}
		because := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, reason) })
		return because && !strings.Contains(tier, `"guard"`), nil
	})
	if err != nil {
		t.Fatalf("want a plan without a guard because %q: %v; warnings %q, planned %s", reason, err, warnings, tier)
	}
}

package apiserver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/install"
)

// quotaOf prepares a namespace on nodes with shared L4 cards, with this quota.
func quotaOf(t *testing.T, i *install.Installation, namespace, quota string) {
	t.Helper()
	setUpReapply(t, i, namespace)
	setQuota(t, i, namespace, quota)
}

func setQuota(t *testing.T, i *install.Installation, namespace, quota string) {
	t.Helper()
	document := "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\nnamespaces: {names: [" + namespace + "]}\nquota: " + quota + "\n"
	if err := i.Policy(t.Context(), namespace, []byte(document)); err != nil {
		t.Fatal(err)
	}
	if err := i.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func sliceOf(t *testing.T, name, namespace, memory string) *unstructured.Unstructured {
	t.Helper()
	return podOf(t, name, namespace, "metadata:\n  labels: {gpuslice.dev/memory: "+memory+"}\nspec:\n  containers:\n"+
		"  - {name: a, image: 'pytorch/pytorch:2.4.0', resources: {limits: {nvidia.com/gpu: 1}}}\n")
}

func TestQuota(t *testing.T) {
	t.Run("holds and is returned", quotaHolds)
	t.Run("an outage holds up no live pod", quotaInOutage)
	t.Run("another pod's promise admits nothing", quotaOfAnotherPromise)
}

func quotaHolds(t *testing.T) {
	i := need(t)
	const ns = "quota-simple"
	quotaOf(t, i, ns, "{memory: 8Gi}")
	create := func(name, memory string, dryRun ...string) error {
		_, err := i.Apply.Create(t.Context(), sliceOf(t, name, ns, memory), metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	want := func(what string, err error, denial string) {
		t.Helper()
		if denial == "" && err != nil || denial != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), denial)) {
			t.Errorf("%s: %v, want %q", what, err, denial)
		}
	}
	const full = "exceeded quota: quota-simple, requested: memory=4Gi, used: memory=8Gi, limited: memory=8Gi"
	for range 3 {
		want("a dry run", create("dry", "4Gi", metav1.DryRunAll), "")
	}
	want("the first", create("one", "4Gi"), "")
	want("the second", create("two", "4Gi"), "")
	want("the third", create("three", "4Gi"), full)
	want("a dry run of it", create("three", "4Gi", metav1.DryRunAll), full)

	zero := int64(0)
	if err := i.Server.Client.CoreV1().Pods(ns).Delete(t.Context(), "two", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	want("in the place of one that is gone", create("three", "4Gi"), "")
	setQuota(t, i, ns, "{memory: 2Gi}")
	want("under a limit that was lowered", create("four", "1Gi"), "used: memory=8Gi, limited: memory=2Gi")
	if pods, err := i.Server.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 2 {
		t.Errorf("%d pods live: a limit that is lowered ends nobody (%v)", len(pods.Items), err)
	}
}

// quotaInOutage ends the webhook: new pods that touch a GPU are denied, and nothing that lives is
// kept from changing, ending and going away.
func quotaInOutage(t *testing.T) {
	i := need(t)
	const ns = "quota-outage"
	quotaOf(t, i, ns, "{memory: 8Gi}")
	u := sliceOf(t, "lives", ns, "4Gi")
	u.SetFinalizers([]string{"example.test/hold"})
	if _, err := i.Apply.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := i.Server.Client.CoreV1().Pods(ns)
	patch := func(what, text string, kind types.PatchType) error {
		_, err := pods.Patch(t.Context(), what, kind, []byte(text), metav1.PatchOptions{})
		return err
	}
	err := i.Down(t.Context(), func() {
		begin := time.Now()
		plain := podOf(t, "plain", ns, "spec:\n  containers:\n  - {name: a, image: busybox}\n")
		if _, err := i.Apply.Create(t.Context(), plain, metav1.CreateOptions{}); err != nil {
			t.Errorf("a pod without a GPU: %v", err)
		}
		if _, err := i.Apply.Create(t.Context(), sliceOf(t, "new", ns, "4Gi"), metav1.CreateOptions{}); err == nil ||
			!strings.Contains(err.Error(), "gpuslice.dev") {
			t.Errorf("a new slice: %v, want a denial that names us", err)
		}
		for what, text := range map[string]string{
			"a label":       `{"metadata":{"labels":{"app":"x"}}}`,
			"its finalizer": `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.test/hold"]}}`,
		} {
			if err := patch("lives", text, types.StrategicMergePatchType); err != nil {
				t.Errorf("%s cannot be changed: %v", what, err)
			}
		}
		for what, text := range map[string]string{
			"what is ours":               `{"metadata":{"annotations":{"gpuslice.dev/promise":null}}}`,
			"the image that was planned": `{"spec":{"containers":[{"name":"a","image":"pytorch/pytorch:2.5.0"}]}}`,
		} {
			if err := patch("lives", text, types.StrategicMergePatchType); err == nil {
				t.Errorf("%s can be changed", what)
			}
		}
		if err := patch("lives", `{"metadata":{"finalizers":["example.test/again"]}}`, types.MergePatchType); err != nil {
			t.Errorf("a finalizer cannot be added: %v", err)
		}
		zero := int64(0)
		if err := pods.Delete(t.Context(), "lives", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
			t.Errorf("it cannot be deleted: %v", err)
		}
		if err := patch("lives", `{"metadata":{"finalizers":null}}`, types.MergePatchType); err != nil {
			t.Errorf("it cannot be let go: %v", err)
		}
		if _, err := pods.Get(t.Context(), "lives", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("it is still there: %v", err)
		}
		t.Logf("all of it took %s", time.Since(begin))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func quotaOfAnotherPromise(t *testing.T) {
	i := need(t)
	const ns = "quota-copied"
	quotaOf(t, i, ns, "{memory: 5Gi}")
	small, err := i.Apply.Create(t.Context(), sliceOf(t, "small", ns, "1Gi"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := i.Apply.Create(t.Context(),
		podOf(t, "whole", ns, "spec:\n  containers:\n  - {name: a, image: busybox}\n"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		api.AnnotationPromise: small.GetAnnotations()[api.AnnotationPromise]}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = i.Server.Client.CoreV1().Pods(ns).Patch(t.Context(), whole.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "only gpuslice may set it") {
		t.Errorf("got %v", err)
	}
	// A copy of a pod is a new pod: it is planned by its own request, and counts for that.
	copied := sliceOf(t, "copied", ns, "5Gi")
	copied.SetAnnotations(map[string]string{api.AnnotationPromise: small.GetAnnotations()[api.AnnotationPromise]})
	_, err = i.Apply.Create(t.Context(), copied, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: quota-copied, requested: memory=5Gi, used: memory=1Gi") {
		t.Errorf("got %v", err)
	}
}

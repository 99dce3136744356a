package apiserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/install"
)

// manifests are pods as authors keep them in files: each way of asking that rewrites something else.
var manifests = map[string]string{
	"label":    "metadata:\n  labels: {gpuslice.dev/memory: 4Gi}\nspec:\n  containers:\n  - {name: a, image: 'pytorch/pytorch:2.4.0', env: [{name: Z, value: z}, {name: A, value: a}], resources: {limits: {nvidia.com/gpu: 1}}}\n",
	"fraction": "spec:\n  containers:\n  - {name: a, image: 'pytorch/pytorch:2.4.0', env: [{name: Z, value: z}], resources: {limits: {nvidia.com/gpu: '0.25'}}}\n",
	"affinity": "metadata:\n  labels: {gpuslice.dev/memory: 4Gi}\nspec:\n  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}]}}}\n" +
		"  initContainers:\n  - {name: prepare, image: 'busybox:1.36'}\n  containers:\n  - {name: b, image: 'busybox:1.36'}\n  - {name: a, image: 'cupy/cupy:v13.0.0', resources: {limits: {nvidia.com/gpu: 1}}}\n",
}

// setUpReapply prepares one namespace with a policy, and nodes of one kind.
func setUpReapply(t *testing.T, i *install.Installation, namespace string) {
	t.Helper()
	source := pools.Source{Nodes: nodesOf(t, "l4-timeslicing-renamed")}
	if err := i.Policy(t.Context(), "default", defaultPolicy("")); err != nil {
		t.Fatal(err)
	}
	if err := i.Nodes(t.Context(), source.Nodes...); err != nil {
		t.Fatal(err)
	}
	if err := i.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.Server.Namespace(t.Context(), namespace, nil); err != nil {
		t.Fatal(err)
	}
	document := "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\naccept: [fractional-quantity]\nnamespaces: {names: [" +
		namespace + "]}\n" +
		"pod: {tolerations: [{key: gpu, operator: Exists}], priorityClassName: gpu-batch}\n"
	if err := i.Policy(t.Context(), namespace, []byte(document)); err != nil {
		t.Fatal(err)
	}
	if err := i.Settle(t.Context(), poolNames(t, source, defaultPolicy(""))...); err != nil {
		t.Fatal(err)
	}
}

// podOf is a manifest as an object.
func podOf(t *testing.T, name, namespace, body string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: v1\nkind: Pod\n"+body), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}

func TestReapply(t *testing.T) {
	t.Run("a bare manifest changes nothing on the server side", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "reapply-server")
		for _, name := range slices.Sorted(maps.Keys(manifests)) {
			u := podOf(t, name, "reapply-server", manifests[name])
			b, err := json.Marshal(u)
			if err != nil {
				t.Fatal(err)
			}
			if err := i.Apply.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			before := live(t, i, u)
			if before.GetAnnotations()[api.AnnotationPlanned] == "" {
				t.Fatalf("%s: the pod did not get a slice: %v", name, before.GetAnnotations())
			}
			if err := i.Apply.Apply(t.Context(), b); err != nil {
				t.Fatalf("%s: applied again: %v", name, err)
			}
			if diff := cmp.Diff(before.Object["spec"], live(t, i, u).Object["spec"]); diff != "" {
				t.Errorf("%s: applied again, the pod changed:\n%s", name, diff)
			}
		}
	})

	t.Run("a bare manifest changes nothing on the client side", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "reapply-client")
		dir := t.TempDir()
		kubectl, err := i.Server.WriteKubectl(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(manifests)) {
			u := podOf(t, name, "reapply-client", manifests[name])
			b, err := yaml.Marshal(u.Object)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, name+".yaml")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			apply := func() {
				if out, err := exec.CommandContext(t.Context(), kubectl, "apply", "-f", file).CombinedOutput(); err != nil {
					t.Fatalf("%s: kubectl apply: %v\n%s", name, err, out)
				}
			}
			apply()
			before := live(t, i, u)
			apply()
			if diff := cmp.Diff(before.Object["spec"], live(t, i, u).Object["spec"]); diff != "" {
				t.Errorf("%s: applied again, the pod changed:\n%s", name, diff)
			}
		}
	})

	t.Run("a label of a live pod cannot change, and a finalizer can be removed", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "reapply-label")
		u := podOf(t, "pod", "reapply-label", manifests["label"])
		u.SetFinalizers([]string{"example.com/hold"})
		if _, err := i.Apply.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pods := i.Server.Client.CoreV1().Pods("reapply-label")
		patch := func(text string) error {
			_, err := pods.Patch(t.Context(), "pod", "application/merge-patch+json", []byte(text), metav1.PatchOptions{})
			return err
		}
		if err := patch(`{"metadata":{"labels":{"gpuslice.dev/memory":"20Gi"}}}`); err == nil ||
			!bytes.Contains([]byte(err.Error()), []byte("delete the pod and create it again")) {
			t.Errorf("the label changed, or was denied without saying what to do: %v", err)
		}
		if err := patch(`{"metadata":{"labels":{"team":"a"},"annotations":{"gpuslice.dev/promise":"{}"}}}`); err != nil {
			t.Errorf("a label of somebody else's: %v", err)
		}
		if got := live(t, i, u); got.GetAnnotations()[api.AnnotationPromise] == "{}" {
			t.Error("the promise on a live pod was overwritten")
		}
		if err := pods.Delete(t.Context(), "pod", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			t.Fatal(err)
		}
		if err := patch(`{"metadata":{"finalizers":null}}`); err != nil {
			t.Errorf("a finalizer of a pod that is being deleted: %v", err)
		}
	})
}

// live is the pod as the server has it.
func live(t *testing.T, i *install.Installation, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	pod, err := i.Apply.Get(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

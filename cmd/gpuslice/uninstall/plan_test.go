package uninstall

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpuslice/gpuslice/policies/api"
)

// made is an object of the system namespace ("" for kinds of the cluster), with a label.
func made(apiVersion, kind, namespace, name string, label ...string) runtime.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	if len(label) == 2 {
		u.SetLabels(map[string]string{label[0]: label[1]})
	}
	return u
}

const system = "gpuslice-system"

// world is a cluster with these objects, every kind listable.
func world(objects ...runtime.Object) *fake.FakeDynamicClient {
	lists := map[schema.GroupVersionResource]string{namespaces: "NamespaceList"}
	for _, k := range kinds() {
		lists[k.resource] = "List"
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
}

func names(p *plan) (all []string) {
	for _, i := range p.items {
		all = append(all, i.String())
	}
	return all
}

func TestFind(t *testing.T) {
	t.Parallel()
	ours := []string{"app.kubernetes.io/name", "gpuslice"}
	client := world(
		made("v1", "Namespace", "", system, ours...),
		made("v1", "ConfigMap", system, "gpuslice-state"),
		made("v1", "ConfigMap", system, "anything", "gpuslice.dev/ledger", "true"),
		made("v1", "ConfigMap", system, "team-a", api.LabelPolicy, "true"),
		made("v1", "ConfigMap", system, "kube-root-ca.crt"),
		made("v1", "ConfigMap", "team-a", "gpuslice-policy"),
		made("v1", "Secret", system, "gpuslice-authority"),
		made("v1", "Secret", system, "gpuslice-promise-keys"),
		made("v1", "Secret", system, "pull-secret"),
		made("rbac.authorization.k8s.io/v1", "ClusterRole", "", "gpuslice-viewers"),
		made("rbac.authorization.k8s.io/v1", "ClusterRole", "", "gpuslice-webhook", ours...),
		made("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "gpuslice", ours...),
		made("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "gpuslice", ours...),
		made("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "others"),
	)
	first := []string{"mutatingwebhookconfiguration/gpuslice", "validatingwebhookconfiguration/gpuslice", "clusterrole/gpuslice-webhook"}
	for _, c := range []struct {
		name      string
		keep      keep
		namespace bool
		want      []string
	}{
		{"all", keep{}, true, append(slices.Clone(first), "configmap/anything", "configmap/gpuslice-state", "configmap/team-a",
			"secret/gpuslice-authority", "secret/gpuslice-promise-keys")},
		{"keys kept", keep{keys: true},
			false, append(slices.Clone(first), "configmap/anything", "configmap/gpuslice-state", "configmap/team-a", "secret/gpuslice-authority")},
		{"policies and keys kept", keep{policies: true, keys: true},
			false, append(slices.Clone(first), "configmap/anything", "configmap/gpuslice-state", "secret/gpuslice-authority")},
	} {
		p, err := (&remover{client: client, system: system, keep: c.keep}).find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := names(p); !slices.Equal(got, c.want) || p.namespace != c.namespace {
			t.Errorf("%s: %q, namespace %t, want %q", c.name, got, p.namespace, c.want)
		}
	}
}

func TestFindNamespaceOfOthers(t *testing.T) {
	t.Parallel()
	p, err := (&remover{client: world(made("v1", "Namespace", "", "shared")), system: "shared"}).find(t.Context())
	if err != nil || p.namespace || !p.empty() || !strings.Contains(strings.Join(p.remains(), "\n"), "others may use it") {
		t.Errorf("%v: %+v", err, p)
	}
}

func TestCarry(t *testing.T) {
	t.Parallel()
	// One kind cannot be listed and one object cannot be deleted; the rest goes.
	t.Run("goes on after a failure", func(t *testing.T) {
		t.Parallel()
		client := world(
			made("v1", "Namespace", "", system, "app.kubernetes.io/name", "gpuslice"),
			made("v1", "ConfigMap", system, "gpuslice-state"), made("v1", "Secret", system, "gpuslice-authority"),
		)
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "x", nil)
		client.PrependReactor("list", "podmonitors", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
		client.PrependReactor("delete", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
		var out strings.Builder
		r := &remover{client: client, system: system, out: &out}
		p, err := r.find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if failed := r.carry(t.Context(), p); len(failed) != 2 {
			t.Errorf("failed %v", failed)
		}
		if _, err := client.Resource(namespaces).Get(t.Context(), system, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the namespace is still there: %v", err)
		}
		for _, text := range []string{"list podmonitors: ", "configmap/gpuslice-state could not be removed: ",
			"secret/gpuslice-authority removed", "namespace/gpuslice-system is being removed"} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%q is not in\n%s", text, out.String())
			}
		}
	})
}

// TestWaitForNamespace: a namespace goes with what is in it, and an installation fails until it is gone.
func TestWaitForNamespace(t *testing.T) {
	t.Parallel()
	ending := func(conditions ...any) *unstructured.Unstructured {
		ns := made("v1", "Namespace", "", system, "app.kubernetes.io/name", "gpuslice").(*unstructured.Unstructured)
		ns.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		ns.Object["status"] = map[string]any{"conditions": conditions}
		return ns
	}
	condition := map[string]any{"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 3 resource instances"}
	for _, c := range []struct {
		name    string
		answers []runtime.Object // one after another, the last again and again; nil: it is gone
		failed  bool
		says    []string
	}{
		{"it is gone at once", []runtime.Object{nil}, false, []string{"namespace/gpuslice-system removed"}},
		{"pods are in it", []runtime.Object{ending(), ending(condition), ending(condition), nil}, false,
			[]string{"waiting for namespace/gpuslice-system: Kubernetes removes",
				"waiting for namespace/gpuslice-system: pods. has 3 resource instances", "namespace/gpuslice-system removed"}},
		{"it does not go", []runtime.Object{ending(condition)}, true, []string{"namespace/gpuslice-system is not removed after 0s: pods. has 3"}},
		{"somebody creates it again", []runtime.Object{ending(), made("v1", "Namespace", "", system)}, true, nil},
	} {
		client := world()
		client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			answer := c.answers[0]
			if len(c.answers) > 1 {
				c.answers = c.answers[1:]
			}
			if answer == nil {
				return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, system)
			}
			return true, answer, nil
		})
		var out strings.Builder
		r := &remover{client: client, system: system, out: &out, wait: 200 * time.Millisecond, interval: time.Millisecond}
		if failed := r.carry(t.Context(), &plan{ending: true}); (len(failed) > 0) != c.failed {
			t.Errorf("%s: %v", c.name, failed)
		}
		for _, text := range c.says {
			if strings.Count(out.String(), text) != 1 {
				t.Errorf("%s: %q is not there once in\n%s", c.name, text, out.String())
			}
		}
	}
}

func TestKindsAreNamedAsKubectlDoes(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		if name := k.String(); strings.HasSuffix(name, "ie") || strings.HasSuffix(name, "s") && name != "ingress" {
			t.Errorf("%s is called %s", k.resource.Resource, name)
		}
	}
}

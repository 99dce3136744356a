package apiserver

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/install"
)

// tenant may edit one governed namespace on nodes with shared L4 cards, and nothing else.
type tenant struct {
	t         *testing.T
	i         *install.Installation
	namespace string
	apply     *install.Applier
	client    *kubernetes.Clientset
}

// attacker makes a namespace under a policy, and somebody who may edit it. labels are the namespace's.
func attacker(t *testing.T, document string, labels map[string]string) *tenant {
	t.Helper()
	i := need(t)
	ctx := t.Context()
	function, _, _ := strings.Cut(t.Name(), "/")
	namespace := strings.ToLower(strings.TrimPrefix(function, "Test"))
	nodes := nodesOf(t, "l4-timeslicing-renamed")
	own := "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\n" + document + "\nnamespaces: {names: [" + namespace + "]}\n"
	for _, err := range []error{
		i.Policy(ctx, "default", defaultPolicy("")), i.Nodes(ctx, nodes...), i.Server.Namespace(ctx, namespace, labels),
		i.Policy(ctx, namespace, []byte(own)), i.Settle(ctx, poolNames(t, pools.Source{Nodes: nodes}, defaultPolicy(""))...),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// The part of the role "edit" that comes with Kubernetes: a controller that does not run here puts it into "edit".
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "edit"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: namespace}}}
	if _, err := i.Server.Client.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := i.Server.As(namespace)
	apply, err := install.NewApplier(config)
	if err != nil {
		t.Fatal(err)
	}
	out := &tenant{t, i, namespace, apply, kubernetes.NewForConfigOrDie(config)}
	out.awaitRights()
	return out
}

// moveTo replaces the nodes, and waits until their pools are known.
func (a *tenant) moveTo(nodes ...*corev1.Node) {
	a.t.Helper()
	if err := a.i.Nodes(a.t.Context(), nodes...); err != nil {
		a.t.Fatal(err)
	}
	if err := a.i.Settle(a.t.Context(), poolNames(a.t, pools.Source{Nodes: nodes}, defaultPolicy(""))...); err != nil {
		a.t.Fatal(err)
	}
}

// awaitRights waits until the server knows of the binding.
func (a *tenant) awaitRights() {
	a.t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: a.namespace, Verb: "create", Resource: "pods"}}}
	err := wait.PollUntilContextTimeout(a.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		got, err := a.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && got.Status.Allowed, err
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

// slice is the manifest of a pod that requests a slice, with more of its spec, its metadata and its container.
func slice(spec, metadata, container string) string {
	return "metadata:\n  labels: {gpuslice.dev/memory: 4Gi}\n" + metadata + "spec:\n" + spec +
		"  containers:\n  - name: a\n    image: registry.example.com/team/train:7\n" +
		container + "    resources: {limits: {nvidia.com/gpu: 1}}\n"
}

func (a *tenant) create(name, manifest string) (*corev1.Pod, error) {
	a.t.Helper()
	got, err := a.apply.Create(a.t.Context(), podOf(a.t, name, a.namespace, manifest), metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return asPod(a.t, got), nil
}

// patch merges a change into a live pod.
func (a *tenant) patch(name, change string) error {
	_, err := a.client.CoreV1().Pods(a.namespace).Patch(a.t.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	return err
}

// made creates a pod that has to be accepted.
func (a *tenant) made(name, manifest string) *corev1.Pod {
	a.t.Helper()
	pod, err := a.create(name, manifest)
	if err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return pod
}

// denied creates a pod that gpuslice has to deny in these words.
func (a *tenant) denied(name, manifest, words string) {
	a.t.Helper()
	_, err := a.create(name, manifest)
	deniedByUs(a.t, name, err, words)
	_, title, _ := strings.Cut(a.t.Name(), "/")
	a.reportDenial(strings.ReplaceAll(title, "_", " ")+": "+name, err)
}

// reportDenial records that an attack was denied with err, in a test that is named after a threat.
func (a *tenant) reportDenial(attack string, err error) {
	if err == nil {
		return
	}
	_, words, _ := strings.Cut(err.Error(), " denied the request: ")
	a.report(attack, abuse.Denied, cmp.Or(words, err.Error()))
}

// contained records that an attack was accepted and has no effect.
func (a *tenant) contained(attack, words string) { a.report(attack, abuse.Contained, words) }

var threatTest = regexp.MustCompile(`^Test(A\d+)([A-Z]|/|$)`)

func (a *tenant) report(attack string, outcome abuse.Outcome, words string) {
	if m := threatTest.FindStringSubmatch(a.t.Name()); m != nil {
		abuse.Report(a.t, abuse.Attempt{Threat: m[1], Attack: attack, Outcome: outcome, Words: words})
	}
}

func deniedByUs(t *testing.T, what string, err error, words string) {
	t.Helper()
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "gpuslice.dev\" denied") || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: want it denied by gpuslice for %q, got: %v", what, words, err)
	}
}

func asPod(t *testing.T, u *unstructured.Unstructured) *corev1.Pod {
	t.Helper()
	b, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(b, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// valueIn is the value of a variable in a container of the pod, "" where it has none.
func valueIn(pod *corev1.Pod, container, variable string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, e := range c.Env {
			if c.Name == container && e.Name == variable {
				return e.Value
			}
		}
	}
	return ""
}

func sliced(pod *corev1.Pod) bool { return pod.Annotations[api.AnnotationPromise] != "" }

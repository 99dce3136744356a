package apiserver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
)

// live creates a sliced pod in the strict namespace, with a finalizer and a scheduling gate.
func (s *bare) live(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := slicedPod(t, scenario(t, "guard-is-injected"), name)
	pod.Annotations[api.AnnotationPromise] = strings.TrimSuffix(pod.Annotations[api.AnnotationPromise], "}") + `,"sig":"of-a-test"}`
	pod.Finalizers = []string{"example.test/hold"}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.test/wait"}}
	made, err := s.Client.CoreV1().Pods("strict").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// patch merges a change into a pod of the strict namespace.
func patch(t *testing.T, client kubernetes.Interface, name, change string, subresources ...string) error {
	t.Helper()
	kind := types.MergePatchType
	if change[0] == '[' {
		kind = types.JSONPatchType
	}
	_, err := client.CoreV1().Pods("strict").Patch(t.Context(), name, kind, []byte(change), metav1.PatchOptions{}, subresources...)
	return err
}

// TestStrictA10 changes live pods in every way that takes the guard or what we wrote away.
func TestStrictA10(t *testing.T) {
	t.Run("while the webhook is down", func(t *testing.T) {
		s := strictly(t)
		s.live(t, "p")
		for _, tt := range []struct{ name, change, want string }{
			{"the guard's image", `[{"op":"replace","path":"/spec/initContainers/1/image","value":"example.test/evil"}]`,
				"the image of a live guard does not change; leave it as it is in gpuslice-guard"},
			{"the guard's tag", `[{"op":"replace","path":"/spec/initContainers/1/image","value":"gpuslice/guard:other"}]`, "gpuslice-guard"},
			{"the check's image", `[{"op":"replace","path":"/spec/initContainers/0/image","value":"example.test/evil"}]`, "gpuslice-check"},
			{"the promise", `{"metadata":{"annotations":{"gpuslice.dev/promise":"{}"}}}`, "do not change: gpuslice.dev/promise"},
			{"the promise, taken away", `{"metadata":{"annotations":{"gpuslice.dev/promise":null}}}`, "do not change: gpuslice.dev/promise"},
			{"what is planned", `{"metadata":{"annotations":{"gpuslice.dev/planned":"{}"}}}`, "do not change: gpuslice.dev/planned"},
			{"what is observed", `{"metadata":{"annotations":{"gpuslice.dev/observed":"{}"}}}`, "do not change: gpuslice.dev/observed"},
			{"one of ours that does not exist", `{"metadata":{"annotations":{"gpuslice.dev/new":"x"}}}`, "do not change: gpuslice.dev/new"},
			{"devices by an annotation", `{"metadata":{"annotations":{"cdi.k8s.io/all":"nvidia.com/gpu=all"}}}`, "do not change: cdi.k8s.io/all"},
			{"devices by NVIDIA's annotation", `{"metadata":{"annotations":{"nvidia.cdi.k8s.io/container.a":"nvidia.com/gpu=all"}}}`,
				"do not change: nvidia.cdi.k8s.io/container.a"},
			{"devices by a plugin's annotation", `{"metadata":{"annotations":{"nvidia.com/container.a.gpus.devices":"all"}}}`,
				"do not change: nvidia.com/container.a.gpus.devices"},
		} {
			t.Run(tt.name, func(t *testing.T) { wantDenied(t, patch(t, s.Client, "p", tt.change), tt.want) })
		}
	})
}

// TestStrictUpdates changes what authors, controllers and kubelets change.
func TestStrictUpdates(t *testing.T) {
	t.Run("blocks nothing that a pod needs", func(t *testing.T) {
		s := strictly(t)
		s.live(t, "p")
		for _, tt := range []struct {
			name, change string
			subresource  []string
		}{
			{"the tenant's image", `[{"op":"replace","path":"/spec/containers/0/image","value":"example.test/app:2"}]`, nil},
			{"labels and annotations of others", `{"metadata":{"labels":{"a":"b"},"annotations":{"example.test/a":"b"}}}`, nil},
			{"a scheduling gate is lifted", `{"spec":{"schedulingGates":[]}}`, nil},
			{"a toleration is added", `[{"op":"add","path":"/spec/tolerations/-","value":{"key":"a","operator":"Exists"}}]`, nil},
			{"the status", `{"status":{"phase":"Running"}}`, []string{"status"}},
			{"a finalizer is added", `{"metadata":{"finalizers":["example.test/hold","example.test/two"]}}`, nil},
			{"a finalizer is removed", `{"metadata":{"finalizers":["example.test/hold"]}}`, nil},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if err := patch(t, s.Client, "p", tt.change, tt.subresource...); err != nil {
					t.Error(err)
				}
			})
		}
		now := int64(0)
		if err := s.Client.CoreV1().Pods("strict").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
		// Whatever else changes with it: a pod that is being deleted goes.
		if err := patch(t, s.Client, "p", `{"metadata":{"finalizers":null,"annotations":{"gpuslice.dev/promise":null}}}`); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Client.CoreV1().Pods("strict").Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the pod is still there: %v", err)
		}
	})
}

// TestStrictA11 debugs live pods.
func TestStrictA11(t *testing.T) {
	t.Run("while the webhook is down", func(t *testing.T) {
		s := strictly(t)
		s.live(t, "p")
		for _, tt := range []struct {
			name string
			ec   corev1.EphemeralContainerCommon
			want string
		}{
			{"all devices", corev1.EphemeralContainerCommon{Name: "a", Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}},
				"remove them from a"},
			{"more of the driver",
				corev1.EphemeralContainerCommon{Name: "b", Env: []corev1.EnvVar{{Name: "NVIDIA_DRIVER_CAPABILITIES", Value: "all"}}},
				"remove them from b"},
			{"the MPS daemon", corev1.EphemeralContainerCommon{Name: "c", Env: []corev1.EnvVar{{Name: "CUDA_MPS_PIPE_DIRECTORY", Value: "/mps"}}},
				"remove them from c"},
			{"privileged", corev1.EphemeralContainerCommon{Name: "d", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}},
				"privileged from d"},
			{"plain", corev1.EphemeralContainerCommon{Name: "e"}, ""},
			{"told to see none", corev1.EphemeralContainerCommon{Name: "f", Env: []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "void"}}},
				""},
		} {
			t.Run(tt.name, func(t *testing.T) {
				tt.ec.Image = "busybox:1.36"
				err := s.debug(t, "p", tt.ec)
				if tt.want != "" {
					wantDenied(t, err, tt.want)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// debug adds an ephemeral container, as kubectl debug does.
func (s *bare) debug(t *testing.T, pod string, c corev1.EphemeralContainerCommon) error {
	t.Helper()
	change, err := json.Marshal(map[string]any{
		"spec": map[string]any{"ephemeralContainers": []corev1.EphemeralContainer{{EphemeralContainerCommon: c}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Client.CoreV1().Pods("strict").Patch(t.Context(), pod, types.StrategicMergePatchType,
		change, metav1.PatchOptions{}, "ephemeralcontainers")
	return err
}

// TestStrictOwnAccount uses a real token of the webhook's ServiceAccount.
func TestStrictOwnAccount(t *testing.T) {
	t.Run("writes what it observes and nothing else", func(t *testing.T) {
		s := strictly(t)
		for _, name := range []string{"20-rbac.yaml", "25-own-rights.yaml"} {
			s.manifest(t, name)
		}
		words, _, _ := strings.Cut(s.live(t, "p").Annotations[api.AnnotationPromise], `,"sig":`)
		promise := func(text string) string {
			change, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{api.AnnotationPromise: text}}})
			if err != nil {
				t.Fatal(err)
			}
			return string(change)
		}
		config, err := s.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		s.createsNoPods(t, client)
		// More rights than the manifests give: as if the token's role had grown.
		rules := []rbacv1.PolicyRule{{APIGroups: []string{""},
			Resources: []string{"pods", "namespaces", "nodes", "nodes/status"}, Verbs: []string{"*"}}}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "grown"}, Rules: rules}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "grown"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "grown"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: api.SystemNamespace, Name: "gpuslice-webhook"}}}
		if _, err := s.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		bypassed := []byte(`{"metadata":{"labels":{"gpuslice.dev/bypass":"true","team":"a"},"annotations":{"gpuslice.dev/bypass-until":"soon","gpuslice.dev/bypass-by":"me","a":"b"}}}`)
		if _, err := s.Client.CoreV1().Namespaces().Patch(t.Context(), "strict",
			types.MergePatchType, bypassed, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		s.awaitOwnRights(t, client)
		onPod := func(change string) error { return patch(t, client, "p", change) }
		onNamespace := func(change string) error {
			_, err := client.CoreV1().Namespaces().Patch(t.Context(), "strict", types.MergePatchType, []byte(change), metav1.PatchOptions{})
			return err
		}
		for _, tt := range []struct {
			name   string
			on     func(string) error
			change string
			passes bool
		}{
			{"what is observed of a pod", onPod, `{"metadata":{"annotations":{"gpuslice.dev/observed":"{}"}}}`, true},
			{"another annotation of a pod", onPod, `{"metadata":{"annotations":{"example.test/a":"b"}}}`, false},
			{"a promise", onPod, `{"metadata":{"annotations":{"gpuslice.dev/promise":"{}"}}}`, false},
			{"the signature of a promise", onPod, promise(words + `,"sig":"newer"}`), true},
			{"the words of a promise, signed anew", onPod, promise(words + `,"v":2,"sig":"newer"}`), false},
			{"a label of a pod", onPod, `{"metadata":{"labels":{"app":"other"}}}`, false},
			{"a pod's image", onPod, `[{"op":"replace","path":"/spec/containers/0/image","value":"example.test/evil"}]`, false},
			{"a pod's finalizer", onPod, `{"metadata":{"finalizers":null}}`, false},
			{"the level of Pod Security", onNamespace, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`, false},
			{"a label of a namespace", onNamespace, `{"metadata":{"labels":{"team":null}}}`, false},
			{"an annotation of a namespace", onNamespace, `{"metadata":{"annotations":{"a":null}}}`, false},
			{"a bypass of another kind", onNamespace, `{"metadata":{"labels":{"gpuslice.dev/bypass":"x"}}}`, false},
			{"the end of a bypass, moved", onNamespace, `{"metadata":{"annotations":{"gpuslice.dev/bypass-until":"later"}}}`, true},
			{"the end of a bypass", onNamespace,
				`{"metadata":{"labels":{"gpuslice.dev/bypass":null},"annotations":{"gpuslice.dev/bypass-until":null,"gpuslice.dev/bypass-by":null}}}`,
				true},
			{"a bypass, begun", onNamespace, `{"metadata":{"labels":{"gpuslice.dev/bypass":"true"}}}`, false},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if err := tt.on(tt.change); (err == nil) != tt.passes || err != nil && !ownRights(err) {
					t.Errorf("passes %t, got: %v", tt.passes, err)
				}
			})
		}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own"}}, metav1.CreateOptions{}); !ownRights(err) {
			t.Errorf("a namespace of its own: %v", err)
		}
		s.ownConditions(t, client)
		s.ownObjects(t, config)
	})
}

// ownConditions writes to a node.
func (s *bare) ownConditions(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-own", Labels: map[string]string{"a": "b"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	node.Status.Capacity = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	if _, err := s.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, change, subresource string
		passes                    bool
	}{
		{"the condition", `{"status":{"conditions":[{"type":"gpuslice.dev/Enforcing","status":"True"}]}}`, "status", true},
		{"the condition, changed", `{"status":{"conditions":[{"type":"gpuslice.dev/Enforcing","status":"False","reason":"A"}]}}`, "status", true},
		{"the condition, removed", `{"status":{"conditions":[{"$patch":"delete","type":"gpuslice.dev/Enforcing"}]}}`, "status", true},
		{"the condition, with a long message",
			`{"status":{"conditions":[{"type":"gpuslice.dev/Enforcing","status":"True","message":"` + strings.Repeat("a", 257) + `"}]}}`,
			"status", false},
		{"the condition, with a long reason",
			`{"status":{"conditions":[{"type":"gpuslice.dev/Enforcing","status":"True","reason":"` + strings.Repeat("a", 65) + `"}]}}`,
			"status", false},
		{"readiness", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, "status", false},
		{"another condition", `{"status":{"conditions":[{"type":"example.test/A","status":"True"}]}}`, "status", false},
		{"no condition at all", `{"status":{"conditions":[{"$patch":"delete","type":"Ready"}]}}`, "status", false},
		{"an address", `{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.2"}]}}`, "status", false},
		{"capacity", `{"status":{"capacity":{"nvidia.com/gpu":"2"}}}`, "status", false},
		{"an image", `{"status":{"images":[{"names":["a"]}]}}`, "status", false},
		{"a label, by the status",
			`{"metadata":{"labels":{"a":"c"}},"status":{"conditions":[{"type":"gpuslice.dev/Enforcing","status":"True"}]}}`, "status", false},
		{"a taint", `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, "", false},
		{"a label", `{"metadata":{"labels":{"a":null}}}`, "", false},
	} {
		var subresources []string
		if tt.subresource != "" {
			subresources = []string{tt.subresource}
		}
		_, err := client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.StrategicMergePatchType,
			[]byte(tt.change), metav1.PatchOptions{}, subresources...)
		own := err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-own-conditions'")
		if (err == nil) != tt.passes || err != nil && !own {
			t.Errorf("%s of a node: passes %t, got: %v", tt.name, tt.passes, err)
		}
	}
	twice := `[{"op":"add","path":"/status/conditions/-","value":{"type":"gpuslice.dev/Enforcing","status":"True"}},
		{"op":"add","path":"/status/conditions/-","value":{"type":"gpuslice.dev/Enforcing","status":"True"}}]`
	_, err := client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.JSONPatchType, []byte(twice), metav1.PatchOptions{}, "status")
	if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-own-conditions'") {
		t.Errorf("the condition twice: %v", err)
	}
}

// createsNoPods tries to create pods with the rights that the manifests give. No policy judges that.
func (s *bare) createsNoPods(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	pods := client.CoreV1().Pods("loose")
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Patch(ctx, "absent", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Fatalf("the account may not patch pods: %v", err)
	}
	_, created := pods.Create(t.Context(), gpuPod("own"), metav1.CreateOptions{})
	applied := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"own"},"spec":{"containers":[{"name":"a","image":"a"}]}}`)
	_, patched := pods.Patch(t.Context(), "own", types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: "own"})
	for how, err := range map[string]error{"created": created, "applied": patched} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot create resource "pods"`) {
			t.Errorf("a pod of its own, %s: %v", how, err)
		}
	}
}

func ownRights(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-own-rights'")
}

// awaitOwnRights returns once the policy is in force.
func (s *bare) awaitOwnRights(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		probe := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
		_, err := client.CoreV1().Namespaces().Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return ownRights(err), nil
	})
	if err != nil {
		t.Fatalf("the policy is not in force: %v", err)
	}
}

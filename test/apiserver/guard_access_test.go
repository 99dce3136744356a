package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/abuse"
	"github.com/gpuslice/gpuslice/test/cluster"
)

// Users of the guarded server.
const (
	tenantUser   = "tenant"   // may edit the namespace "team"
	ownerUser    = "owner"    // cluster-admin, bound in the namespace "team" alone
	operatorUser = "operator" // may edit the namespace, and exec into guards anywhere
)

// guarded is a bare server that keeps people out of guards, with the sliced pod p in three namespaces.
func guarded(t *testing.T) *bare {
	t.Helper()
	s := without(t, cluster.Options{}, "10-namespace.yaml", "54-guard.yaml")
	pod := slicedPod(t, scenario(t, "guard-is-injected"), "p")
	for name, labels := range map[string]map[string]string{"team": nil, "gpu-operator": nil, "bypassed": {api.LabelBypass: "true"}} {
		if err := s.Namespace(t.Context(), name, labels); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Client.CoreV1().Pods(name).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		s.bind(t, name, tenantUser, "system:aggregate-to-edit")
		s.bind(t, name, operatorUser, "system:aggregate-to-edit")
		s.bind(t, name, ownerUser, "cluster-admin")
	}
	s.mayExecIntoGuards(t, operatorUser)
	s.awaitAccess(t)
	return s
}

// bind gives a user a ClusterRole in one namespace.
func (s *bare) bind(t *testing.T, namespace, user, role string) {
	t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	if _, err := s.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// mayExecIntoGuards gives a user the right that the policy asks about.
func (s *bare) mayExecIntoGuards(t *testing.T, user string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "guards"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{api.Domain}, Resources: []string{"guards"}, Verbs: []string{"exec"}}}}
	if _, err := s.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "guards"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "guards"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	if _, err := s.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// awaitAccess returns once the policy denies the tenant and the operator's right is known.
func (s *bare) awaitAccess(t *testing.T) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return keptOut(s.enter(ctx, tenantUser, "team", "exec", limits.GuardContainer)) &&
			!keptOut(s.enter(ctx, operatorUser, "team", "exec", limits.GuardContainer)), nil
	})
	if err != nil {
		t.Fatalf("the policy is not in force: %v", err)
	}
}

// enter sends what kubectl exec or attach sends. No kubelet runs, so the answer is an error in any case.
func (s *bare) enter(ctx context.Context, user, namespace, how, container string) error {
	var options runtime.Object = &corev1.PodExecOptions{Container: container, Command: []string{"true"}, Stdout: true}
	if how == "attach" {
		options = &corev1.PodAttachOptions{Container: container, Stdout: true}
	}
	request := kubernetes.NewForConfigOrDie(s.As(user)).CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("p").
		SubResource(how)
	return request.VersionedParams(options, scheme.ParameterCodec).Do(ctx).Error()
}

// keptOut reports whether the policy denied it.
func keptOut(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'gpuslice-guard'")
}

// TestGuardAccess enters the guard while no webhook runs.
func TestGuardAccess(t *testing.T) {
	s := guarded(t)
	for _, tt := range []struct {
		name, user, namespace, container string
		denied                           bool
	}{
		{"a tenant, the guard", tenantUser, "team", limits.GuardContainer, true},
		{"a tenant, the check", tenantUser, "team", limits.CheckContainer, true},
		{"cluster-admin of one namespace, the guard", ownerUser, "team", limits.GuardContainer, true},
		{"a tenant, its own container", tenantUser, "team", "trainer", false},
		{"a tenant, no container named", tenantUser, "team", "", false},
		{"an operator with the right, the guard", operatorUser, "team", limits.GuardContainer, false},
		{"a namespace that gpuslice ignores", tenantUser, "gpu-operator", limits.GuardContainer, false},
		{"a bypassed namespace", tenantUser, "bypassed", limits.GuardContainer, false},
	} {
		for _, how := range []string{"exec", "attach"} {
			t.Run(how+": "+tt.name, func(t *testing.T) {
				err := s.enter(t.Context(), tt.user, tt.namespace, how, tt.container)
				if keptOut(err) != tt.denied {
					t.Errorf("denied is to be %t, got: %v", tt.denied, err)
				}
				if !tt.denied && (err == nil || !strings.Contains(err.Error(), "does not have a host assigned")) {
					t.Errorf("the request was to pass admission, got: %v", err)
				}
				if tt.denied && !strings.Contains(err.Error(), "kubectl logs") {
					t.Errorf("no remedy: %v", err)
				}
				reportAccess(t, how+" into "+tt.container+" as "+tt.user, err)
			})
		}
	}
	owner, admin := kubernetes.NewForConfigOrDie(s.As(ownerUser)), s.Client
	for _, tt := range []struct {
		name, container, target string
		client                  *kubernetes.Clientset
		denied                  bool
	}{
		{"the guard", "a", limits.GuardContainer, owner, true},
		{"the check", "b", limits.CheckContainer, owner, true},
		{"a container of the author's own", "c", "trainer", owner, false},
		{"a cluster administrator, the guard", "d", limits.GuardContainer, admin, false},
		{"beside one that is in the guard already", "e", "trainer", owner, false},
	} {
		t.Run("debug: "+tt.name, func(t *testing.T) {
			err := target(t, tt.client, tt.container, tt.target)
			if keptOut(err) != tt.denied || !tt.denied && err != nil {
				t.Errorf("denied is to be %t, got: %v", tt.denied, err)
			}
			reportAccess(t, "kubectl debug --target="+tt.target, err)
		})
	}
}

// reportAccess records an attempt that was denied.
func reportAccess(t *testing.T, attack string, err error) {
	t.Helper()
	if keptOut(err) {
		abuse.Report(t, abuse.Attempt{Threat: "A31", Attack: attack, Outcome: abuse.Denied, Words: err.Error()})
	}
}

// target adds an ephemeral container in the processes of another one, as kubectl debug --target does.
func target(t *testing.T, client kubernetes.Interface, name, container string) error {
	t.Helper()
	change := fmt.Sprintf(`{"spec":{"ephemeralContainers":[{"name":%q,"image":"busybox:1.36","targetContainerName":%q}]}}`, name, container)
	_, err := client.CoreV1().Pods("team").Patch(t.Context(), "p", types.StrategicMergePatchType,
		[]byte(change), metav1.PatchOptions{}, "ephemeralcontainers")
	return err
}

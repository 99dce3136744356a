package apiserver

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/admission/pods"
)

// kept are objects of ours that the manifests do not hold: the webhook makes them, or an administrator does. Events are
// not among them: edit and admin write those of their namespace, so an Event can only weaken what is said of a pod.
const kept = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-state, namespace: gpuslice-system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gpuslice-ledger-team-a, namespace: gpuslice-system}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: team-a, namespace: gpuslice-system, labels: {gpuslice.dev/policy: "true"}}, data: {policy.yaml: "apiVersion: gpuslice.dev/v1"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: gpuslice-authority, namespace: gpuslice-system}}
---
{apiVersion: v1, kind: Secret, metadata: {name: gpuslice-promise-keys, namespace: gpuslice-system}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: gpuslice-leader, namespace: gpuslice-system}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: gpuslice, namespace: team-a}, spec: {hard: {requests.nvidia.com/gpu: "1"}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {gpuslice.dev/enforce: strict}}}
---
{apiVersion: v1, kind: Node, metadata: {name: gpu-1, labels: {nvidia.com/gpu.product: NVIDIA-L4}}}
`

// tenants hold the default roles in their own namespace, bound there as administrators of clusters do.
var tenants = []string{"edit", "admin"}

// rights is a bare server with every object of ours.
type rights struct {
	*bare
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newRights(t *testing.T) *rights {
	t.Helper()
	// The controller manager fills the roles edit and admin, which are aggregated from others.
	s := &rights{bare: without(t, cluster.Options{ControllerManager: true})}
	names, err := fs.Glob(deploy.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s.manifest(t, name)
	}
	if err := s.Namespace(t.Context(), "team-a", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.apply.Apply(t.Context(), []byte(kept)); err != nil {
		t.Fatal(err)
	}
	for _, role := range tenants {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: role}}
		if _, err := s.Client.CoreV1().ServiceAccounts("team-a").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "team-a", Name: role}}}
		if _, err := s.Client.RbacV1().RoleBindings("team-a").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range tenants {
		s.awaitRights(t, role)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return s
}

// awaitRights returns once the tenant may do what its role is for: until then denials prove nothing.
func (s *rights) awaitRights(t *testing.T, role string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(s.tenant(t, role))
	may := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "team-a", Verb: "create", Resource: "configmaps"}}}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, may, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("the role %s stays empty: %v", role, err)
	}
}

// tenant is access with a real token of the tenant that holds the role.
func (s *rights) tenant(t *testing.T, role string) *rest.Config {
	t.Helper()
	config, err := s.ServiceAccount(t.Context(), "team-a", role)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// ours are all objects of ours that the server holds.
func (s *rights) ours(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	names, err := fs.Glob(deploy.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests := []string{kept}
	for _, name := range names {
		text, err := deploy.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, string(text))
	}
	for _, m := range manifests {
		objects, err := install.Objects([]byte(m))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objects {
			stored, err := s.apply.Get(t.Context(), u)
			if err != nil {
				t.Fatalf("%s %s is not there: %v", u.GetKind(), u.GetName(), err)
			}
			all = append(all, stored)
		}
	}
	return all
}

// resource is the object's resource, as a user reaches it.
func (s *rights) resource(t *testing.T, client dynamic.Interface, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	m, err := s.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		t.Fatal(err)
	}
	if u.GetNamespace() == "" {
		return client.Resource(m.Resource)
	}
	return client.Resource(m.Resource).Namespace(u.GetNamespace())
}

// writes are the ways to write an object.
func writes(r dynamic.ResourceInterface, u *unstructured.Unstructured) map[string]func(context.Context) error {
	label := []byte(`{"metadata":{"labels":{"gpuslice.dev/tried":"true"}}}`)
	another := u.DeepCopy()
	another.SetName("another")
	another.SetResourceVersion("")
	changed := u.DeepCopy()
	changed.SetAnnotations(map[string]string{"tried": "true"})
	return map[string]func(context.Context) error{
		"create": func(ctx context.Context) error { _, err := r.Create(ctx, another, metav1.CreateOptions{}); return err },
		"update": func(ctx context.Context) error { _, err := r.Update(ctx, changed, metav1.UpdateOptions{}); return err },
		"patch": func(ctx context.Context) error {
			_, err := r.Patch(ctx, u.GetName(), types.MergePatchType, label, metav1.PatchOptions{})
			return err
		},
		"delete": func(ctx context.Context) error { return r.Delete(ctx, u.GetName(), metav1.DeleteOptions{}) },
		"deletecollection": func(ctx context.Context) error {
			return r.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
		"status": func(ctx context.Context) error {
			_, err := r.Patch(ctx, u.GetName(), types.MergePatchType, label, metav1.PatchOptions{}, "status")
			return err
		},
	}
}

func TestTenantRights(t *testing.T) {
	// It makes every write to every object of ours, as users who hold the default roles edit and
	// admin in their namespace.
	t.Run("write nothing of gpuslice", func(t *testing.T) {
		s := newRights(t)
		objects := s.ours(t)
		for _, user := range tenants {
			client, err := dynamic.NewForConfig(s.tenant(t, user))
			if err != nil {
				t.Fatal(err)
			}
			tried, done, kinds := 0, 0, map[string]bool{}
			for _, u := range objects {
				for verb, write := range writes(s.resource(t, client, u), u) {
					tried, kinds[u.GetKind()] = tried+1, true
					if err := write(t.Context()); !forbiddenOrAbsent(verb, err) {
						done++
						t.Errorf("%s may %s %s %s/%s: %v", user, verb, u.GetKind(), u.GetNamespace(), u.GetName(), err)
					}
				}
			}
			t.Logf("%s: %d writes tried on %d objects of %d kinds, %d not denied for want of rights", user, tried, len(objects), len(kinds), done)
		}
		for _, before := range objects {
			after, err := s.apply.Get(t.Context(), before)
			if err != nil || after.GetUID() != before.GetUID() || after.GetLabels()["gpuslice.dev/tried"] != "" {
				t.Errorf("%s %s is no longer what it was: %v", before.GetKind(), before.GetName(), err)
			}
		}
	})

	// It tries what leads to our rights without writing an object of ours.
	t.Run("find no way around", func(t *testing.T) {
		s := newRights(t)
		for _, user := range tenants {
			client, err := dynamic.NewForConfig(s.tenant(t, user))
			if err != nil {
				t.Fatal(err)
			}
			for name, manifest := range map[string]string{
				"a pod that runs as our ServiceAccount": `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: gpuslice-system}, spec: {serviceAccountName: gpuslice-webhook, containers: [{name: a, image: a}]}}`,
				"a Secret with our account's token":     `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: t, namespace: gpuslice-system, annotations: {kubernetes.io/service-account.name: gpuslice-webhook}}}`,
				"our role in its own namespace":         `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: team-a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gpuslice-webhook}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ` + user + `}]}`,
				"endpoints of its own for our Service":  `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {name: e, namespace: gpuslice-system, labels: {kubernetes.io/service-name: gpuslice-webhook}}, endpoints: [], ports: []}`,
				"a namespace that fails open":           `{apiVersion: v1, kind: Namespace, metadata: {name: own, labels: {gpuslice.dev/fail: open}}}`,
			} {
				objects, err := install.Objects([]byte(manifest))
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.resource(t, client, objects[0]).Create(t.Context(), objects[0], metav1.CreateOptions{})
				if !apierrors.IsForbidden(err) {
					t.Errorf("%s makes %s: %v", user, name, err)
				}
			}
			config := s.tenant(t, user)
			_, err = kubernetes.NewForConfigOrDie(config).CoreV1().ServiceAccounts(api.SystemNamespace).
				CreateToken(t.Context(), pods.ServiceAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s gets a token of our ServiceAccount: %v", user, err)
			}
			config.Impersonate.UserName = "system:serviceaccount:" + api.SystemNamespace + ":" + pods.ServiceAccount
			_, err = kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(api.SystemNamespace).List(t.Context(), metav1.ListOptions{})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot impersonate") {
				t.Errorf("%s acts as our ServiceAccount: %v", user, err)
			}
		}
	})

	// It keeps the tests above honest: the same users do write where they may.
	t.Run("write what is theirs", func(t *testing.T) {
		s := newRights(t)
		for _, user := range tenants {
			client := kubernetes.NewForConfigOrDie(s.tenant(t, user))
			own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: api.TenantPolicyName}}
			if _, err := client.CoreV1().ConfigMaps("team-a").Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
				t.Errorf("%s may not write its own preferences: %v", user, err)
			}
			if err := client.CoreV1().ConfigMaps("team-a").Delete(t.Context(), own.Name, metav1.DeleteOptions{}); err != nil {
				t.Errorf("%s may not delete its own preferences: %v", user, err)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: user},
				Spec: corev1.PodSpec{ServiceAccountName: user, Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
			if _, err := client.CoreV1().Pods("team-a").Create(t.Context(), pod,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("%s may not create a pod: %v", user, err)
			}
		}
	})
}

// forbiddenOrAbsent reports whether the write was denied for want of rights; not every kind has a status.
func forbiddenOrAbsent(verb string, err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot") || verb == "status" && apierrors.IsNotFound(err)
}

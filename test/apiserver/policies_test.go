package apiserver

import (
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/install"
)

func TestBrokenPolicy(t *testing.T) {
	t.Run("is denied when it is written", func(t *testing.T) {
		i := need(t)
		setUpReapply(t, i, "written")
		err := i.Policy(t.Context(), "new",
			[]byte("apiVersion: gpuslice.dev/v1\nnamespaces: {names: [x]}\nmode: on\nlimits: {perPod: {memory: lots}}\n"))
		for _, text := range []string{"problems: 2", `data[policy.yaml]: mode: Unsupported value: "on"`,
			`data[policy.yaml]: limits.perPod.memory: Invalid value: "lots"`, "(line 4)"} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("want %q in: %v", text, err)
			}
		}
		err = i.Policy(t.Context(), "new", []byte("apiVersion: gpuslice.dev/v1\nnamespaces: {names: [written]}\n"))
		if err == nil ||
			!strings.Contains(err.Error(), `policies gpuslice-system/new and gpuslice-system/written claim namespace "written" with equal right`) {
			t.Errorf("a second policy for the namespace: %v", err)
		}
		maps := i.Server.Client.CoreV1().ConfigMaps("written")
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Data: map[string]string{api.PolicyKey: "mode: nonsense"}}
		if _, err := maps.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Errorf("a ConfigMap of somebody else's: %v", err)
		}
	})
	t.Run("without its label is warned about", func(t *testing.T) {
		i := need(t)
		heard := &collector{}
		unlabeled := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "unlabeled", "namespace": api.SystemNamespace}, "data": map[string]any{api.PolicyKey: "mode: nonsense"}}}
		if _, err := i.Apply.Warning(heard).Create(t.Context(), unlabeled, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Errorf("a ConfigMap without the label: %v", err)
		}
		if text := strings.Join(heard.texts, " "); !strings.Contains(text, `the label gpuslice.dev/policy: "true" is missing`) {
			t.Errorf("its author gets %q", text)
		}
	})
}

// editor is a user with the role edit in a namespace: with the one that a controller, which this server does not run, puts
// into it.
func editor(t *testing.T, i *install.Installation, namespace string) string {
	t.Helper()
	const name = "jane"
	_, err := i.Server.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "editors"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: name, APIGroup: rbacv1.GroupName}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ask := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "configmaps"}}}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := i.Server.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, ask, metav1.CreateOptions{})
		return err == nil && got.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("the role binding is not in force: %v", err)
	}
	return name
}

// TestTenantDocument acts with the rights of a tenant: A21 of the threat list.
func TestTenantDocument(t *testing.T) {
	t.Run("only tightens", func(t *testing.T) {
		i := need(t)
		const ns = "tightens"
		setUpReapply(t, i, ns)
		document := "apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing]\nnamespaces: {names: [" +
			ns + "]}\nlimits: {perContainer: {memory: 4Gi}}\n"
		if err := i.Policy(t.Context(), ns, []byte(document)); err != nil {
			t.Fatal(err)
		}
		if err := i.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		user := i.Server.As(editor(t, i, ns))
		write := func(text string) error {
			return i.TenantPolicy(t.Context(), user, ns, []byte("apiVersion: gpuslice.dev/v1\n"+text))
		}
		err := write("limits: {perContainer: {memory: 8Gi}}\nguard: {enabled: false}\n")
		for _, text := range []string{"problems: 2", "limits.perContainer.memory: 8Gi is more than 4Gi",
			"guard: not for a tenant's own document", "policy gpuslice-system/" + ns} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("a document that widens: want %q in: %v", text, err)
			}
		}
		create := func(name, memory string) error {
			_, err := i.Apply.Create(t.Context(), sliceOf(t, name, ns, memory), metav1.CreateOptions{})
			return err
		}
		if err := create("before", "3Gi"); err != nil {
			t.Fatal(err)
		}
		if err := write("limits: {perContainer: {memory: 2Gi}}\nquota: {memory: 4Gi}\n"); err != nil {
			t.Fatalf("a document that tightens: %v", err)
		}
		if err := i.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := create("after", "3Gi"); err == nil || !strings.Contains(err.Error(), "tightened by "+ns+"/gpuslice-policy allows 2Gi") {
			t.Errorf("beyond the tenant's limit: %v", err)
		}
		if err := create("second", "2Gi"); err == nil ||
			!strings.Contains(err.Error(), "exceeded quota: "+ns+"/gpuslice-policy, requested: memory=2Gi, used: memory=3Gi, limited: memory=4Gi") {
			t.Errorf("beyond the tenant's quota: %v", err)
		}
		if err := create("small", "1Gi"); err != nil {
			t.Errorf("within both: %v", err)
		}
		client, err := kubernetes.NewForConfig(user)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().ConfigMaps(api.SystemNamespace).Get(t.Context(), ns, metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("a tenant reads the authority's policies: %v", err)
		}
	})
}

// TestLastGoodPolicy writes what would have been denied: the entry fails open, and
// the webhook that starts afterwards holds what was good.
func TestLastGoodPolicy(t *testing.T) {
	t.Run("is kept over a change while the webhook is down", func(t *testing.T) {
		i := need(t)
		const ns = "lastgood"
		setUpReapply(t, i, ns)
		maps := i.Server.Client.CoreV1().ConfigMaps
		good, err := maps(api.SystemNamespace).Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // others settle on this policy too
			if err := i.Policy(context.WithoutCancel(t.Context()), ns, []byte(good.Data[api.PolicyKey])); err != nil {
				t.Error(err)
			}
		})
		err = i.Down(t.Context(), func() {
			broken := good.DeepCopy()
			broken.Data[api.PolicyKey] = strings.Replace(broken.Data[api.PolicyKey], "strategies: [time-slicing]", "strategies: [nonsense]", 1)
			if _, err := maps(api.SystemNamespace).Update(t.Context(), broken, metav1.UpdateOptions{}); err != nil {
				t.Errorf("an outage keeps a policy from being written: %v", err)
			}
			wide := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: api.TenantPolicyName},
				Data: map[string]string{api.PolicyKey: "apiVersion: gpuslice.dev/v1\nstrategies: [mps, time-slicing]\n"}}
			if _, err := maps(ns).Create(t.Context(), wide, metav1.CreateOptions{}); err != nil {
				t.Errorf("an outage keeps a tenant's document from being written: %v", err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got, warned, err := create(t.Context(), i, sliceOf(t, "still", ns, "2Gi"))
		if err != nil || got.GetAnnotations()[api.AnnotationPromise] == "" {
			t.Fatalf("the last good version does not hold: %v", err)
		}
		if text := strings.Join(warned, " "); !strings.Contains(text, "strategies[0]: mps is not among time-slicing") {
			t.Errorf("there is no warning of the tenant's document that asks for more: %q", text)
		}
		if err := maps(ns).Delete(t.Context(), api.TenantPolicyName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestTenantConfigMaps tries the webhook's own rights: its informer lists one name in all namespaces,
// and nothing else.
func TestTenantConfigMaps(t *testing.T) {
	t.Run("only those of gpuslice are read", func(t *testing.T) {
		i := need(t)
		config, err := i.Server.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		all := client.CoreV1().ConfigMaps(metav1.NamespaceAll)
		if _, err := all.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + api.TenantPolicyName}); err != nil {
			t.Errorf("its own: %v", err)
		}
		for what, selector := range map[string]string{"all": "",
			"another name": "metadata.name=kube-root-ca.crt", "all but one": "metadata.name!=x"} {
			if _, err := all.List(t.Context(), metav1.ListOptions{FieldSelector: selector}); !apierrors.IsForbidden(err) {
				t.Errorf("%s: %v, want it forbidden", what, err)
			}
		}
		if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kube-root-ca.crt",
			metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("one of another name: %v, want it forbidden", err)
		}
	})
}

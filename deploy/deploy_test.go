package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/pods"
	"github.com/gpuslice/gpuslice/webhook/admission/server"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// manifests decodes every document strictly: an unknown or repeated field fails the test.
func manifests(t *testing.T, pattern string) []runtime.Object {
	t.Helper()
	names, err := fs.Glob(deploy.Files, pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no manifests match %s: %v", pattern, err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var out []runtime.Object
	for _, name := range names {
		text, err := deploy.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out = append(out, object)
		}
	}
	return out
}

// every returns the manifests of one type.
func every[T runtime.Object](t *testing.T) []T {
	t.Helper()
	var out []T
	for _, object := range manifests(t, "*.yaml") {
		if typed, ok := object.(T); ok {
			out = append(out, typed)
		}
	}
	if len(out) == 0 {
		t.Fatalf("there is no %T", *new(T))
	}
	return out
}

func TestManifests(t *testing.T) {
	t.Parallel()
	t.Run("namespaced objects are in the system namespace", func(t *testing.T) {
		t.Parallel()
		clusterWide := []string{"Namespace", "ClusterRole", "ClusterRoleBinding",
			"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
			"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "FlowSchema", "PriorityLevelConfiguration"}
		for _, object := range append(manifests(t, "*.yaml"), manifests(t, "60-policies/*.yaml")...) {
			kind := object.GetObjectKind().GroupVersionKind().Kind
			accessor, err := meta.Accessor(object)
			if err != nil {
				t.Fatal(err)
			}
			want := api.SystemNamespace
			if slices.Contains(clusterWide, kind) {
				want = ""
			}
			if accessor.GetNamespace() != want {
				t.Errorf("%s %s is in namespace %q", kind, accessor.GetName(), accessor.GetNamespace())
			}
		}
	})
	t.Run("ports and paths are the code's", func(t *testing.T) {
		t.Parallel()
		container := every[*appsv1.Deployment](t)[0].Spec.Template.Spec.Containers[0]
		ports := map[string]int32{}
		for _, p := range container.Ports {
			ports[p.Name] = p.ContainerPort
		}
		if diff := cmp.Diff(map[string]int32{"https": server.Port, "metrics": server.MetricsPort}, ports); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		for _, arg := range []string{fmt.Sprintf("--listen=:%d", server.Port),
			fmt.Sprintf("--metrics-listen=:%d", server.MetricsPort), "--namespace=" + api.SystemNamespace} {
			if !slices.Contains(container.Args, arg) {
				t.Errorf("the args %q lack %s", container.Args, arg)
			}
		}
		if got := container.ReadinessProbe.HTTPGet.Path; got != server.PathReady {
			t.Errorf("readiness asks %s", got)
		}
		if got := container.LivenessProbe.HTTPGet.Path; got != server.PathHealth {
			t.Errorf("liveness asks %s", got)
		}
		service := every[*corev1.Service](t)[0]
		for _, p := range service.Spec.Ports {
			if _, ok := ports[p.TargetPort.StrVal]; !ok {
				t.Errorf("port %s of the Service leads to %s, which the container does not have", p.Name, p.TargetPort.StrVal)
			}
		}
		paths := map[string]string{}
		for _, w := range every[*admissionv1.MutatingWebhookConfiguration](t)[0].Webhooks {
			paths[w.Name] = *w.ClientConfig.Service.Path
			if s := w.ClientConfig.Service; s.Name != service.Name || s.Namespace != service.Namespace || *s.Port != 443 {
				t.Errorf("%s calls %s/%s:%d", w.Name, s.Namespace, s.Name, *s.Port)
			}
		}
		for _, w := range every[*admissionv1.ValidatingWebhookConfiguration](t)[0].Webhooks {
			paths["validating "+w.Name] = *w.ClientConfig.Service.Path
			if s := w.ClientConfig.Service; s.Name != service.Name || s.Namespace != service.Namespace || *s.Port != 443 {
				t.Errorf("%s calls %s/%s:%d", w.Name, s.Namespace, s.Name, *s.Port)
			}
		}
		want := map[string]string{
			"pods.gpuslice.dev": server.PathMutatePods, "templates.gpuslice.dev": server.PathMutateTemplates,
			"validating pods-open.gpuslice.dev":               server.PathValidatePods,
			"validating gpus-beside-claims.gpuslice.dev":      server.PathValidatePods,
			"validating claims-open.gpuslice.dev":             server.PathValidatePods,
			"validating extended-resources-open.gpuslice.dev": server.PathValidatePods,
			"validating extended-resources.gpuslice.dev":      server.PathValidatePods,
			"validating pods.gpuslice.dev":                    server.PathValidatePods,
			"validating policies.gpuslice.dev":                server.PathValidatePolicies,
			"validating subresources-open.gpuslice.dev":       server.PathValidatePods,
			"validating subresources.gpuslice.dev":            server.PathValidatePods,
			"validating sliced-pods-open.gpuslice.dev":        server.PathValidatePods,
			"validating sliced-pods.gpuslice.dev":             server.PathValidatePods,
			"validating changed-pods-open.gpuslice.dev":       server.PathValidatePods,
			"validating changed-pods.gpuslice.dev":            server.PathValidatePods,
		}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("names that the code relies on are the manifests'", func(t *testing.T) {
		t.Parallel()
		if got := every[*corev1.ServiceAccount](t)[0].Name; got != pods.ServiceAccount {
			t.Errorf("the ServiceAccount is %s, and only %s may write what is observed", got, pods.ServiceAccount)
		}
		if got := every[*appsv1.Deployment](t)[0].Spec.Template.Spec.ServiceAccountName; got != pods.ServiceAccount {
			t.Errorf("the Deployment runs as %s", got)
		}
		leases := []string{}
		for _, r := range every[*rbacv1.Role](t)[0].Rules {
			if slices.Contains(r.Resources, "leases") {
				leases = append(leases, r.ResourceNames...)
			}
		}
		if diff := cmp.Diff([]string{leader.LeaseName}, leases); diff != "" {
			t.Errorf("leases (-want +got)\n%s", diff)
		}
	})
}

func TestWebhookConfigurations(t *testing.T) {
	t.Parallel()
	t.Run("an outage of the webhook stops nobody", func(t *testing.T) {
		t.Parallel()
		for _, w := range every[*admissionv1.MutatingWebhookConfiguration](t)[0].Webhooks {
			harmless := []admissionv1.SideEffectClass{admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun}
			if *w.FailurePolicy != admissionv1.Ignore || *w.TimeoutSeconds > 3 || !slices.Contains(harmless, *w.SideEffects) {
				t.Errorf("%s: failurePolicy %s, timeout %d s, side effects %s", w.Name, *w.FailurePolicy, *w.TimeoutSeconds, *w.SideEffects)
			}
			if *w.MatchPolicy != admissionv1.Equivalent || !slices.Equal(w.AdmissionReviewVersions, []string{"v1"}) {
				t.Errorf("%s: matchPolicy %s, versions %s", w.Name, *w.MatchPolicy, w.AdmissionReviewVersions)
			}
			if w.ObjectSelector != nil || len(w.MatchConditions) == 0 || len(w.ClientConfig.CABundle) > 0 {
				t.Errorf("%s: selects on what a tenant may write, has no condition, or a bundle that is not its own", w.Name)
			}
			selector := w.NamespaceSelector.MatchExpressions[0]
			if selector.Key != corev1.LabelMetadataName || selector.Operator != "NotIn" {
				t.Errorf("%s: namespaces are chosen by %s %s", w.Name, selector.Key, selector.Operator)
			}
			for _, namespace := range []string{"kube-system", "kube-node-lease", "kube-public", api.SystemNamespace, "gpu-operator"} {
				if !slices.Contains(selector.Values, namespace) {
					t.Errorf("%s: namespace %s is not exempt", w.Name, namespace)
				}
			}
			for _, rule := range w.Rules {
				for _, resource := range rule.Resources {
					if strings.ContainsAny(resource, "*/") && !slices.Contains([]string{"pods/ephemeralcontainers", "pods/resize"}, resource) {
						t.Errorf("%s: matches %s", w.Name, resource)
					}
				}
			}
		}
	})
	// The condition misses no policy: by the names that the code reads, in the system namespace too.
	t.Run("a policy is matched by what the code reads", func(t *testing.T) {
		t.Parallel()
		all := every[*admissionv1.ValidatingWebhookConfiguration](t)[0].Webhooks
		i := slices.IndexFunc(all, func(w admissionv1.ValidatingWebhook) bool { return w.Name == "policies.gpuslice.dev" })
		w := all[i]
		if *w.FailurePolicy != admissionv1.Ignore || *w.TimeoutSeconds > 3 ||
			*w.SideEffects != admissionv1.SideEffectClassNone || len(w.ClientConfig.CABundle) > 0 {
			t.Errorf("failurePolicy %s, timeout %d s, side effects %s", *w.FailurePolicy, *w.TimeoutSeconds, *w.SideEffects)
		}
		for _, text := range []string{"[object, oldObject]", "'" + api.TenantPolicyName + "'", "'" + api.LabelPolicy + "'"} {
			if !strings.Contains(w.MatchConditions[0].Expression, text) {
				t.Errorf("the condition does not name %s", text)
			}
		}
		if slices.Contains(w.NamespaceSelector.MatchExpressions[0].Values, api.SystemNamespace) {
			t.Error("policies of the system namespace are not validated")
		}
	})
}

func TestWebhookPod(t *testing.T) {
	t.Parallel()
	t.Run("passes the namespace's Pod Security level", func(t *testing.T) {
		t.Parallel()
		namespace := every[*corev1.Namespace](t)[0]
		if got := namespace.Labels[psa.EnforceLevelLabel]; got != string(psa.LevelRestricted) {
			t.Fatalf("the namespace enforces %q", got)
		}
		evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range every[*appsv1.Deployment](t) {
			template := d.Spec.Template
			level := psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}
			for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s", d.Name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			if !*template.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem {
				t.Errorf("%s: the root file system can be written", d.Name)
			}
		}
	})
	t.Run("stops within its grace period", func(t *testing.T) {
		t.Parallel()
		d := every[*appsv1.Deployment](t)[0]
		const drainAndShutdown = 15 + 15
		if got := *d.Spec.Template.Spec.TerminationGracePeriodSeconds; got <= drainAndShutdown {
			t.Errorf("%d s", got)
		}
		if *d.Spec.Replicas < 3 || d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
			t.Errorf("%d replicas, %s unavailable", *d.Spec.Replicas, d.Spec.Strategy.RollingUpdate.MaxUnavailable)
		}
	})
}

func TestRBAC(t *testing.T) {
	t.Parallel()
	// Every right of the ServiceAccount is here: a new one is a line in this test.
	t.Run("the rights are these and no more", func(t *testing.T) {
		t.Parallel()
		var got []string
		line := func(scope string, rules []rbacv1.PolicyRule) {
			for _, r := range rules {
				for _, resource := range r.Resources {
					got = append(got,
						strings.TrimRight(fmt.Sprintf("%s: %s %s %s", scope, strings.Join(r.Verbs, ","), resource, strings.Join(r.ResourceNames, ",")), " "))
				}
			}
		}
		for _, r := range every[*rbacv1.ClusterRole](t) {
			line("cluster", r.Rules)
		}
		for _, r := range every[*rbacv1.Role](t) {
			line(r.Namespace, r.Rules)
		}
		want := []string{
			"cluster: get,list,watch,patch mutatingwebhookconfigurations gpuslice",
			"cluster: get,list,watch,patch validatingwebhookconfigurations gpuslice",
			"cluster: get,list,watch namespaces",
			"cluster: get,list,watch nodes",
			"cluster: patch nodes/status",
			"cluster: list,watch runtimeclasses",
			"cluster: list,watch clusterpolicies",
			"cluster: list,watch resourceslices", "cluster: get,list,watch deviceclasses",
			"cluster: get,list,watch resourceclaims",
			"cluster: get,list,watch resourceclaimtemplates",
			"cluster: create,delete resourceclaimtemplates",
			"cluster: list,watch configmaps gpuslice-policy",
			"cluster: patch namespaces",
			"cluster: list,watch,patch pods",
			"cluster: list,watch,create,patch events",
			"cluster: get,list,watch resourcequotas",
			"cluster: list,watch limitranges",
			"cluster: get replicasets",
			"cluster: get deployments",
			"cluster: get statefulsets",
			"cluster: get daemonsets",
			"cluster: get jobs",
			"cluster: get cronjobs",
			"cluster: get replicationcontrollers",
			"gpuslice-system: list,watch configmaps",
			"gpuslice-system: get,create,update,delete configmaps",
			"gpuslice-system: create,list,watch leases",
			"gpuslice-system: get,update leases gpuslice-leader",
			"gpuslice-system: create secrets",
			"gpuslice-system: get,update secrets gpuslice-authority,gpuslice-promise-keys",
			"gpuslice-system: list,watch secrets gpuslice-authority",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestSamplePolicies(t *testing.T) {
	t.Parallel()
	t.Run("govern the namespaces that they name", func(t *testing.T) {
		t.Parallel()
		var all []*config.Policy
		for _, object := range manifests(t, "60-policies/*.yaml") {
			m := object.(*corev1.ConfigMap)
			if m.Labels[api.LabelPolicy] != "true" || len(m.Data) != 1 {
				t.Errorf("%s is not read as a policy", m.Name)
			}
			p, problems := config.Parse(m.Namespace+"/"+m.Name, []byte(m.Data[api.PolicyKey]))
			if len(problems) > 0 || p == nil {
				t.Errorf("%s: %v", m.Name, problems.ToAggregate())
				continue
			}
			all = append(all, p)
		}
		book := config.NewBook(all)
		for _, tt := range []struct {
			namespace api.Namespace
			want      string
		}{
			{api.Namespace{Name: "notebooks"}, "gpuslice-system/team-notebooks"},
			{api.Namespace{Name: "search", Labels: map[string]string{"workload": "inference"}}, "gpuslice-system/team-inference"},
			{api.Namespace{Name: "anything"}, "gpuslice-system/default"},
		} {
			p, err := book.For(tt.namespace)
			if err != nil || p == nil || p.Name != tt.want {
				t.Errorf("%s: %v, %v", tt.namespace.Name, p, err)
			}
		}
	})
}

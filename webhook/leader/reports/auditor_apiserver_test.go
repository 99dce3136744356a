package reports

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	policyconfig "github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/governed"
)

// TestAuditorOnAPIServer: the leader audits governed namespaces that are not enforced, each with its quota, says once that the API is
// missing, and removes Reports where nothing is audited any more.
func TestAuditorOnAPIServer(t *testing.T) {
	server := cluster.ForTest(t, cluster.Options{})
	applier, err := install.Manifests(t.Context(), server.Config, "10-namespace.yaml", "25-own-rights.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(applier.Manifest(t.Context(), "50-webhooks.yaml", withoutReviews),
		applier.Manifest(t.Context(), "20-rbac.yaml", ofChart)); err != nil {
		t.Fatal(err)
	}
	config, err := server.ServiceAccount(t.Context(), api.SystemNamespace, "gpuslice-webhook")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]string{"team-a": "audit", "team-b": "enforce", "gpu-operator": "audit"}
	book := map[string]*policyconfig.Policy{}
	for namespace, mode := range modes {
		if err := server.Namespace(t.Context(), namespace, nil); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		p, problems := policyconfig.Parse("gpuslice-system/"+namespace,
			[]byte("apiVersion: gpuslice.dev/v1\nenforcementMode: "+mode+"\nquota: {gpus: 1}\nnamespaces: {names: ["+namespace+"]}\n"))
		if len(problems) > 0 {
			t.Fatal(problems.ToAggregate())
		}
		book[namespace] = p
		for name, limits := range map[string]corev1.ResourceList{"plain": nil, "one": gpus("1"), "two": gpus("1")} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "a", Image: "busybox", Resources: corev1.ResourceRequirements{Limits: limits}}},
			}}
			if _, err := server.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var logged strings.Builder
	a := NewAuditor(Options{
		Client: client, Interval: time.Hour, Configurations: []string{"gpuslice"},
		Governed: func() (out []governed.Namespace, err error) {
			for namespace, p := range book {
				out = append(out, governed.Namespace{Name: namespace, Policy: p})
			}
			return out, nil
		},
		InputOf: func(_ context.Context, pod *corev1.Pod) (policies.Input, error) {
			return policies.Input{Pod: pod, Policy: book[pod.Namespace], Namespace: api.Namespace{Name: pod.Namespace}}, nil
		},
		QuotaOf: func(in policies.Input) quota.Quota { return in.Policy.QuotaFor(in.Namespace.Name) },
		Log:     funcr.New(func(_, args string) { logged.WriteString(args + "\n") }, funcr.Options{}),
	})
	audit := func() {
		t.Helper()
		if err := a.audit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	audit()
	audit()
	if n := strings.Count(logged.String(), "the cluster has no API openreports.io/v1alpha1"); n != 1 {
		t.Errorf("it is said %d times that the API is missing:\n%s", n, logged.String())
	}
	crds, err := cluster.OpenReportsCRDs(t.Context())
	if err := errors.Join(err, applier.Apply(t.Context(), bytes.Join(crds, []byte("\n---\n")))); err != nil {
		t.Fatal(err)
	}
	awaitServed(t, a.store)
	audit()
	reports := reportsOf(t, server)
	if len(reports) != 1 || reports["team-a"] == nil {
		t.Fatalf("reports: %v", reports)
	}
	summary, _, _ := unstructured.NestedMap(reports["team-a"].Object, "summary")
	if summary["fail"] != int64(1) || summary["skip"] != int64(2) {
		t.Errorf("of a pod without a GPU, one within the quota and one beyond: %v", reports["team-a"].Object)
	}
	deniesOtherReports(t, config)
	book["team-a"], book["team-b"] = book["team-b"], book["team-a"]
	audit()
	if reports := reportsOf(t, server); len(reports) != 1 || reports["team-b"] == nil {
		t.Errorf("once another namespace is enforced: %v", reports)
	}
}

// deniesOtherReports waits until the webhook's ServiceAccount may write no Report of another name.
func deniesOtherReports(t *testing.T, webhook *rest.Config) {
	t.Helper()
	client, err := dynamic.NewForConfig(webhook)
	if err != nil {
		t.Fatal(err)
	}
	other := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": APIVersion, "kind": "Report", "metadata": map[string]any{"name": "other"}, "source": "x"},
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(resourceOfReports).Namespace("team-a").Create(ctx, other,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "gpuslice-own-reports"), nil
	})
	if err != nil {
		t.Errorf("a Report of another name is written: %v", err)
	}
}

var resourceOfReports = schema.GroupVersionResource{Group: "openreports.io", Version: "v1alpha1", Resource: "reports"}

// withoutReviews leaves the webhook configurations without anybody who answers: they say of which namespaces pods are reviewed.
func withoutReviews(manifest []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(manifest, []byte("failurePolicy: Fail"), []byte("failurePolicy: Ignore")),
		[]byte("timeoutSeconds: 10"), []byte("timeoutSeconds: 1"))
}

// ofChart is a manifest with the lines that the chart adds where the leader audits.
func ofChart(manifest []byte) []byte {
	var out []byte
	for line := range bytes.Lines(manifest) {
		if added, ok := bytes.CutPrefix(line, []byte("# chart: ")); ok && !bytes.Contains(added, []byte("{{")) {
			line = added
		}
		out = append(out, line...)
	}
	return out
}

func gpus(n string) corev1.ResourceList {
	return corev1.ResourceList{api.ResourceGPU: resource.MustParse(n)}
}

func awaitServed(t *testing.T, s Store) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		served, err := s.Served(ctx)
		if !served || err != nil {
			return false, err
		}
		return s.DeleteExcept(ctx, func(string) bool { return true }) == nil, nil
	})
	if err != nil {
		t.Fatalf("the API of reports: %v", err)
	}
}

// reportsOf are the Reports of the cluster, by namespace.
func reportsOf(t *testing.T, server *cluster.APIServer) map[string]*unstructured.Unstructured {
	t.Helper()
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(resourceOfReports).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		out[list.Items[i].GetNamespace()] = &list.Items[i]
	}
	return out
}

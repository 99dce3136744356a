package chart

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// matrix are the programs of every supported version: API servers and helms by their names in the cache.
func matrix(t *testing.T) (bin cluster.Bin, servers, helms []string) {
	t.Helper()
	cluster.Need(t)
	if !cluster.Wanted("matrix") {
		t.Skip("compiles two more API servers, and two more Helms: run make test-matrix")
	}
	bin, err := cluster.Build(t.Context(), os.Stderr,
		slices.Concat(cluster.ControlPlane(), []cluster.Target{cluster.OldestAPIServer(), cluster.Helm()}, cluster.OtherHelms())...)
	if err != nil {
		t.Fatal(err)
	}
	newest, err := cluster.Build(t.Context(), os.Stderr, cluster.NewestKubernetes())
	if err != nil {
		t.Fatal(err)
	}
	bin["kube-apiserver-newest"] = newest["kube-apiserver"]
	return bin, []string{"kube-apiserver-oldest", "kube-apiserver", "kube-apiserver-newest"}, []string{"helm-oldest", "helm-3", "helm"}
}

// TestMatrix is what the table of deploy/README.md reports: every Helm installs, upgrades and removes the chart on every Kubernetes,
// and on every Kubernetes the webhook gives a pod a slice.
func TestMatrix(t *testing.T) {
	bin, servers, helms := matrix(t)
	webhook, err := install.Binary(t.Context(), t.TempDir(), "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range servers {
		t.Run(name, func(t *testing.T) {
			programs := maps.Clone(bin)
			programs["kube-apiserver"] = bin[name]
			s := cluster.ForTest(t, cluster.Options{Bin: programs, ControllerManager: name == "kube-apiserver"})
			v, err := s.Client.Discovery().ServerVersion()
			if err != nil {
				t.Fatal(err)
			}
			for _, program := range helms {
				t.Run(program, func(t *testing.T) {
					h := newHelm(t, s.Kubeconfig)
					h.path = bin[program]
					h.installs(s)
					h.deniesWrongValues()
					t.Logf("Kubernetes %s, Helm %s", v.GitVersion, strings.TrimSpace(h.run("version", "--short")))
				})
			}
			slicesPod(t, s, webhook)
		})
	}
}

// installs takes a release through its life.
func (h *helm) installs(s *cluster.APIServer) {
	h.Helper()
	namespaced := []string{"--namespace=" + api.SystemNamespace}
	h.run(append(namespaced, "install", release, chartFolder, version("v1"), "--create-namespace",
		"--set=agent.enabled=true,metrics.dashboard.enabled=true")...)
	h.run(append(namespaced, "upgrade", release, chartFolder, "--reset-then-reuse-values",
		"--set=replicas=2,policies.default.apiVersion=gpuslice.dev/v1")...)
	d, err := s.Client.AppsV1().Deployments(api.SystemNamespace).Get(h.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		h.Fatal(err)
	}
	if got := d.Spec.Template.Spec.Containers[0].Image; *d.Spec.Replicas != 2 || got != "gpuslice/webhook:v1" {
		h.Errorf("after the upgrade: %d replicas of %s", *d.Spec.Replicas, got)
	}
	if _, err := s.Client.CoreV1().ConfigMaps(api.SystemNamespace).Get(h.Context(), "default", metav1.GetOptions{}); err != nil {
		h.Error(err)
	}
	h.run(append(namespaced, "uninstall", release)...)
	left, err := s.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(h.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		h.Errorf("after uninstall there are %d webhook configurations: %v", len(left.Items), err)
	}
}

// deniesWrongValues asks this Helm's own validator of schemas.
func (h *helm) deniesWrongValues() {
	h.Helper()
	for set, want := range map[string]string{
		"replica=3": "replica",
		"policies.a.apiVersion=gpuslice.dev/v1,policies.a.mode=transparant": "mode",
		"policies.a.apiVersion=gpuslice.dev/v1,policies.a.strategy=mig":     "strategy",
		"policies.a.mode=opt-in": "apiVersion",
		"hostNetwork=perhaps":    "hostNetwork",
	} {
		if out, err := h.try("template", release, chartFolder, version("v1"), "--set="+set); err == nil || !strings.Contains(err.Error(), want) {
			h.Errorf("--set=%s: %v\n%.200s", set, err, out)
		}
	}
}

// slicesPod runs the webhook beside an API server, as its manifests configure it, and creates a pod.
func slicesPod(t *testing.T, s *cluster.APIServer, webhook string) {
	t.Helper()
	i, err := install.New(t.Context(), s, webhook, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	if err == nil {
		err = i.Nodes(t.Context(), nodes...)
	}
	if err == nil {
		err = i.Policy(t.Context(), "default", []byte("apiVersion: gpuslice.dev/v1\n"))
	}
	if err == nil {
		err = i.Settle(t.Context())
	}
	if err == nil {
		err = s.Namespace(t.Context(), team, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train", Labels: map[string]string{"gpuslice.dev/memory": "4Gi"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "trainer", Image: "trainer", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}
	got, err := s.Client.CoreV1().Pods(team).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if why := unsliced(got); why != "" {
		t.Errorf("the pod has no slice: %s", why)
	}
	pod.Labels["gpuslice.dev/memory"] = "400Gi"
	if _, err := s.Client.CoreV1().Pods(team).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil ||
		!strings.Contains(err.Error(), "fits no pool") {
		t.Errorf("a slice that fits nowhere: %v", err)
	}
}
